"""Load the captured tables of a source into the warehouse for the first time, or load some of them again.

**What it does.** `read_tables` reads the tables in chunks and stages them. `load_tables` creates the warehouse tables
from the staged files. Tables that are loaded already are left alone. Then `SOURCE.delta` keeps the tables up to
date. It starts at the log position before the first read.

**How to run it.** Trigger it without parameters to load all captured tables. Name tables in `tables` to load only
those, for example `shop.orders`.

**When it fails.** The last lines of the failed task's log say what failed, where, why, and what to do. Fix the cause,
then clear the failed task: it continues where it stopped. If only some tables could not be loaded, `check_tables`
fails and names them. Fix the causes, then trigger the DAG again.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG

from loader.airflow.dags.arguments import dag_arguments, set_params
from loader.airflow.form_params import tables_param
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.reports.asset_events import tables_alias
from loader.airflow.tasks import check_tables
from loader.dag_settings import DagSettings, load_pool_of, pool_of

_TABLES = "Tables to load, as schema.table, one per line; empty: all captured tables."


def initial_load_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.initial_load`."""
    arguments = dag_arguments("initial_load", source, settings, page=str(__doc__))
    with DAG(
        description=f"Load tables of {source} for the first time",
        schedule=None,
        **arguments,
    ) as dag:
        read = LoaderSparkOperator(
            task_id="read_tables",
            use_case="read_tables",
            source=source,
            arguments={"tables": dag.param("tables")},
            fail_on_tables=False,
            pool=load_pool_of(source, settings),
        )
        load = LoaderSparkOperator(
            task_id="load_tables",
            use_case="load_tables",
            source=source,
            arguments=read.output,
            fail_on_tables=False,
            pool=pool_of(source, settings),
            outlets=[tables_alias(source)],
        )
        results: Any = [read.output, load.output]
        check_tables(source=source, results=results)
        set_params(dag, {"tables": tables_param(_TABLES)})
    return dag
