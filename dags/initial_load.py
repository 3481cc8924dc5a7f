"""Loads the captured tables of a source for the first time, or some of them again, into the warehouse.

**What it does.** `snapshot` reads the tables in chunks and stages them; `load` makes the tables of the warehouse from
that. Tables that are loaded already are left alone. From then on `continuous_delta` keeps them up to date: it begins at
the log position before the first read.

**How to run it.** Trigger it, by default for all captured tables, or with `tables` for a few: `shop.orders`.

**When it fails.** The last lines of the failed task's log say what failed, where, why, and what to do. Fix the cause,
then clear the failed task: it goes on where it stopped. `check_tables` names the tables that could not be loaded, when
all others are: fix the causes, then trigger the DAG again.
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
        "tables": tables_param("Tables to load, as schema.table, one on a line; none: all that are captured."),
    },
    **serial(),
) as dag:
    snapshot = LoaderSparkOperator(
        task_id="snapshot",
        use_case="snapshot",
        source=SOURCE,
        arguments={"tables": dag.param("tables")},
        fail_on_tables=False,
    )
    load = LoaderSparkOperator(
        task_id="load",
        use_case="load",
        source=SOURCE,
        arguments=snapshot.output,
        fail_on_tables=False,
    )
    check_tables(source=SOURCE, results=[snapshot.output, load.output])
