"""Keep the tables of a source fast to read, and remove files that are no longer needed.

**What it does.** `maintain` compacts warehouse tables with many small files or deletions. It expires snapshots older
than `maintain.keep_days` of the source, except those with an applied position and those of views that must be kept. It
removes files that belong to no snapshot. `purge` removes the staged files of intervals that every table applied longer
ago than `staging.keep` of the configuration (by default they are kept forever), or moves them to `staging.archive`. It
also removes files of unused attempts. Plans and manifests stay. Deltas may run at the same time.

**How to run it.** It is scheduled. In a run that you trigger, `tables` limits `maintain` to these tables.

**When it fails.** The last lines of the failed task's log say what failed, where, why, and what to do. Fix the cause,
then clear the failed task. Finished work is not done again.
"""

from __future__ import annotations

from airflow.sdk import DAG

from loader.airflow.dags.arguments import dag_arguments, parse_schedule, set_params
from loader.airflow.form_params import tables_param
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.tasks import purge
from loader.dag_settings import DagSettings, pool_of

_TABLES = "Tables to maintain, as schema.table, one per line; empty: all loaded tables."


def maintain_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.maintain`."""
    pool = pool_of(source, settings)
    with DAG(
        description=f"Compact the tables of {source}, and remove files that are no longer needed",
        schedule=parse_schedule(settings.schedule.maintain),
        **dag_arguments("maintain", source, settings, page=str(__doc__)),
    ) as dag:
        LoaderSparkOperator(
            task_id="maintain",
            use_case="maintain",
            source=source,
            arguments={"tables": dag.param("tables")},
            pool=pool,
        )
        purge(source=source)
        set_params(dag, {"tables": tables_param(_TABLES)})
    return dag
