"""Brings the tables of a source up to date with the server's binary log, every five minutes.

**What it does.** `snapshot_position` chooses intervals of the log: those that are planned and not done, else what was
logged since the last one. `extract` stages their changes, one interval after the other, for `run_minutes` of the source
at most; what is left is the next run's. `materialise` applies what is staged to the warehouse. A quiet source starts no
Spark. The dates of a run mean nothing: where to begin is known from the intervals before, however late or early a run
is.
`check_runway` fails the run beside its other tasks, before anything is lost, when the server was about to purge what
was still to be read (`min_runway_hours` of the source).

**When it fails.** The DAG pauses itself, and nothing is lost as long as the server keeps its log. Read the end of the
failed task's log: it says what failed, why, and what to do. Then clear the failed task, and unpause the DAG: the failed
run does its own intervals, and the runs after it go on from there. Every task can be cleared at any time, also
of a run that succeeded: what is done already is found and not done twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from loader.airflow.defaults import SERIAL, source_param, tasks
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.tasks import check_runway, snapshot_position

with DAG(
    dag_id="continuous_delta",
    description="Follow the binary log",
    doc_md=__doc__,
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    default_args=tasks(hours=2),
    tags=["binlog-loader", "delta"],
    params={"source": source_param()},
    **SERIAL,
) as dag:
    interval = snapshot_position(source="{{ params.source }}")
    extract = LoaderSparkOperator(
        task_id="extract",
        use_case="extract",
        source="{{ params.source }}",
        arguments=interval,
    )
    materialise = LoaderSparkOperator(
        task_id="materialise",
        use_case="materialise",
        source="{{ params.source }}",
        arguments=extract.output,
    )
    check_runway(source="{{ params.source }}", interval=interval)
