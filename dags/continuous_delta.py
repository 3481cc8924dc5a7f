"""Bring the tables of a source up to date from the server's binary log, every five minutes.

**What it does.** `plan_interval` chooses intervals of the log: planned intervals that are not done, else the log since
the last interval. `extract` stages their changes, one interval after the other, for up to `run_minutes` of the source;
the next run continues. `materialise` applies staged changes to the warehouse. If no table changed, no Spark starts. The
dates of a run have no meaning: each run starts where the intervals before it stop. So this DAG cannot be backfilled by
date. To go over a part of the log again, use `replay_binlog`.

**When it fails.** Nothing is lost while the server keeps its log. The next run continues with the oldest interval that
is not done. The last lines of the failed task's log say what failed, where, why, and what to do.

- `check_tables`: the run is done, except for quarantined tables, or for an interval after others that could not be
  staged. The task names them, and how to fix each.
- `check_runway`: the server will soon purge log that is not read yet (`min_runway_hours` of the source). Nothing is
  lost yet, and the other tasks continue.
- Any other task: fix the cause; then the next run succeeds. Every task can be cleared at any time, also in a run that
  succeeded. Finished work is found and not done twice.

The DAG continues after a failed run. With `airflow.pause_on_failure = true` of a source it pauses itself instead.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from loader.airflow.defaults import SOURCE, alarm, serial, source_param, tasks
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.tasks import check_runway, check_tables, plan_interval

with DAG(
    dag_id="continuous_delta",
    description="Follow the binary log; to go over a part of it again, use replay_binlog, not a backfill",
    doc_md=__doc__,
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    default_args=tasks(hours=2),
    tags=["binlog-loader", "delta"],
    params={"source": source_param(scheduled=True)},
    **serial(),
) as dag:
    interval = plan_interval(source=SOURCE)
    extract = LoaderSparkOperator(
        task_id="extract",
        use_case="extract",
        source=SOURCE,
        arguments=interval,
    )
    materialise = LoaderSparkOperator(
        task_id="materialise",
        use_case="materialise",
        source=SOURCE,
        arguments=extract.output,
        fail_on_tables=False,
    )
    check_tables(source=SOURCE, results=[extract.output, materialise.output])
    alarm(check_runway(source=SOURCE, interval=interval))
