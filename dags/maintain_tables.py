"""Keeps a source's tables fast to read, once a day, and removes what nothing needs any more.

**What it does.** `maintain` compacts the tables of the warehouse that have many small files or deletions, expires
snapshots older than `maintain.keep_days` of the source (but those with an applied position, and those of views that are
to be kept), and removes files that belong to no snapshot. `purge` removes the staged files of intervals that every
table has had for longer than `staging.keep` of the configuration (by default they are kept for good), or moves them to
`staging.archive`; and the files of attempts that lost against another. Plans and manifests stay, so the deltas go on as
before; both may run while they do.

**When it fails.** The last lines of the failed task's log say what failed, where, why, and what to do. Fix the cause,
then clear the failed task. What was done already is not done again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from loader.airflow.defaults import SOURCE, serial, source_param, tasks
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.tasks import purge

with DAG(
    dag_id="maintain_tables",
    description="Compact tables, and remove what is no longer needed",
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
