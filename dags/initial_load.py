"""Load the captured tables of a source into the warehouse for the first time, or load some of them again.

**What it does.** `read_tables` reads the tables in chunks and stages them. `load_tables` creates the warehouse tables
from the staged files. Tables that are loaded already are left alone. Then `continuous_delta` keeps the tables up to
date. It starts at the log position before the first read.

**How to run it.** Trigger it without parameters to load all captured tables. Name tables in `tables` to load only
those, for example `shop.orders`.

**When it fails.** The last lines of the failed task's log say what failed, where, why, and what to do. Fix the cause,
then clear the failed task: it continues where it stopped. If only some tables could not be loaded, `check_tables`
fails and names them. Fix the causes, then trigger the DAG again.
"""

from __future__ import annotations

from airflow.sdk import DAG

from loader.airflow.defaults import SOURCE, serial, source_param, tables_param, tasks
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.tasks import check_tables

with DAG(
    dag_id="initial_load",
    description="Load tables for the first time",
    doc_md=__doc__,
    schedule=None,
    default_args=tasks(hours=48),
    tags=["binlog-loader", "load"],
    params={
        "source": source_param(scheduled=False),
        "tables": tables_param("Tables to load, as schema.table, one per line; empty: all captured tables."),
    },
    **serial(),
) as dag:
    read = LoaderSparkOperator(
        task_id="read_tables",
        use_case="read_tables",
        source=SOURCE,
        arguments={"tables": dag.param("tables")},
        fail_on_tables=False,
    )
    load = LoaderSparkOperator(
        task_id="load_tables",
        use_case="load_tables",
        source=SOURCE,
        arguments=read.output,
        fail_on_tables=False,
    )
    check_tables(source=SOURCE, results=[read.output, load.output])
