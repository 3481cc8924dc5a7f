"""Keep the tables of a source fast to read, once a day, and remove files that are no longer needed.

**What it does.** `maintain` compacts warehouse tables with many small files or deletions. It expires snapshots older
than `maintain.keep_days` of the source, except those with an applied position and those of views that must be kept. It
removes files that belong to no snapshot. `purge` removes the staged files of intervals that every table applied longer
ago than `staging.keep` of the configuration (by default they are kept forever), or moves them to `staging.archive`. It
also removes files of unused attempts. Plans and manifests stay. Deltas may run at the same time.

**When it fails.** The last lines of the failed task's log say what failed, where, why, and what to do. Fix the cause,
then clear the failed task. Finished work is not done again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from loader.airflow.defaults import SOURCE, serial, source_param, tasks
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.tasks import purge

with DAG(
    dag_id="maintain_tables",
    description="Compact tables, and remove files that are no longer needed",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    default_args=tasks(hours=12),
    tags=["binlog-loader", "maintenance"],
    params={"source": source_param(scheduled=True)},
    **serial(),
) as dag:
    LoaderSparkOperator(
        task_id="maintain",
        use_case="maintain",
        source=SOURCE,
        arguments={},
    )
    purge(source=SOURCE)
