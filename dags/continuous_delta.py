"""Brings the tables of a source up to date with the server's binary log, every five minutes.

**What it does.** `plan_interval` chooses intervals of the log: those that are planned and not done, else what was
logged since the last one. `extract` stages their changes, one interval after the other, for `run_minutes` of the source
at most; what is left is the next run's. `materialise` applies what is staged to the warehouse. Where no table changed,
no Spark starts. The dates of a run mean nothing: where to begin is known from the intervals before, however late or
early a run is. So it cannot be backfilled by date: to go over a part of the log again, use `replay_binlog`.

**When it fails.** Nothing is lost as long as the server keeps its log. The next run goes on with the oldest interval
that is not done. The last lines of the failed task's log say what failed, where, why, and what to do.

- `check_tables`: the run is done, but for tables that are quarantined, or for an interval that could not be staged
  behind others. It names them, with the cure of each.
- `check_runway`: the server is about to purge what is still to be read (`min_runway_hours` of the source). Nothing is
  lost yet, and the other tasks go on.
- Any other task: fix the cause; the next run then succeeds. Every task can be cleared at any time, also of a run that
  succeeded: what is done already is found and not done twice.

The DAG goes on after a failed run. With `airflow.pause_on_failure = true` of a source it pauses itself instead.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from loader.airflow.defaults import SOURCE, alarm, serial, source_param, tasks
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.tasks import check_runway, check_tables, plan_interval

with DAG(
    dag_id="continuous_delta",
    description="Follow the binary log; to go over a part of it again, use replay_binlog and no backfill",
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
