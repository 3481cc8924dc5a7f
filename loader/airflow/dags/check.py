"""Check server, log, grants, tables, store, warehouse and machine of a source, without changing anything.

**What it does.** `check_source` makes the checks of `loader doctor` and logs each finding. It runs where the tasks of
the other DAGs run, so it also checks what these can reach. It starts a small Spark application.

**How to run it.** Trigger it, or set `airflow.schedule.check` of the source.

**When it fails.** A check found an error, which stops runs or loses changes. The end of the log names each error with
its fix. Warnings are in the log and do not fail the task.
"""

from __future__ import annotations

from airflow.sdk import DAG

from loader.airflow.dags.arguments import dag_arguments, parse_schedule
from loader.airflow.tasks import check_source
from loader.dag_settings import DagSettings, pool_of


def check_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.check`."""
    with DAG(
        description=f"Check everything that the loader of {source} needs",
        schedule=parse_schedule(settings.schedule.check),
        **dag_arguments("check", source, settings, page=str(__doc__)),
    ) as dag:
        check_source.override(pool=pool_of(source, settings))(source=source)
    return dag
