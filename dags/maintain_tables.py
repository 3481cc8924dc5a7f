"""Removes, once a day, the staged files of a source that nothing needs any more.

**What it does.** `purge` removes the files of intervals that every table has had for longer than `staging.keep` of the
configuration (by default they are kept for good), or moves them to `staging.archive`; and the files of attempts that
lost against another. Plans and manifests stay, so the deltas go on as before; it may run while they do.

**When it fails.** Read the end of the failed task's log: it says what failed, why, and what to do. Then clear the
failed task and unpause the DAG. What was removed already is not looked for again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from loader.airflow.defaults import SERIAL, TASKS, source_param
from loader.airflow.tasks import purge

with DAG(
    dag_id="maintain_tables",
    description="Remove staged files that are no longer needed",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    default_args=TASKS,
    tags=["binlog-loader", "maintenance"],
    params={"source": source_param()},
    **SERIAL,
) as dag:
    purge(source="{{ params.source }}")
