"""Bring the tables of a source up to date from the server's binary log.

**What it does.** `plan_interval` chooses intervals of the log: planned intervals that are not done, else the log since
the last interval. `extract` stages their changes, one interval after the other, for up to `run_minutes` of the source;
the next run continues. `materialise` applies staged changes to the warehouse. If no table changed, it starts no Spark.
On a Spark cluster, the application of `extract` also applies the changes. Then `materialise` finds and reports them, or
applies them itself if that failed. The dates of a run have no meaning: each run starts where the intervals before it
stop. So this DAG cannot be backfilled by date. To go over a part of the log again, use `SOURCE.replay`. `materialise`
also names captured tables that are not loaded. With `auto_load` of the source it loads the small ones.

**How to run it.** It is scheduled. A run that you trigger with `until` stops there. The next run goes on to the end of
the log. If the tables must stay there, first set `airflow.schedule = { delta = "" }` of the source; a run of a paused
DAG would not start. With `now`, tables with a rule such as `every = "1h"` are merged although they are not due.

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

from typing import Any

from airflow.sdk import DAG

from loader.airflow.dags.arguments import alarm, dag_arguments, parse_schedule, set_params
from loader.airflow.form_params import flag_param, text_param
from loader.airflow.reports.asset_events import tables_alias
from loader.airflow.stages.extract_operator import ExtractOperator
from loader.airflow.stages.materialise_operator import MaterialiseOperator
from loader.airflow.tasks import check_runway, check_tables, plan_interval
from loader.airflow.versions import flag_field
from loader.dag_settings import DagSettings, pool_of

_UNTIL = (
    "Stop there: binlog.000054:123, a GTID set, or before a time such as 2026-01-31T12:00:00Z. Empty: the end of the"
    " log."
)

_NOW = "Also merge tables that are not due, see every in the rules of tables."


def delta_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.delta`."""
    pool = pool_of(source, settings)
    with DAG(
        description=f"Follow the binary log of {source}; to go over a part of it again, use the replay, not a backfill",
        schedule=parse_schedule(settings.schedule.delta),
        **dag_arguments("delta", source, settings, page=str(__doc__)),
    ) as dag:
        until: Any = dag.param("until")
        interval: Any = plan_interval(source=source, until=until)
        now = flag_field(dag, "now")
        extract = ExtractOperator(task_id="extract", source=source, interval=interval, now=now, pool=pool)
        materialise = MaterialiseOperator(
            task_id="materialise",
            source=source,
            staged=extract.output,
            interval=interval,
            fail_on_tables=False,
            now=now,
            pool=pool,
            outlets=[tables_alias(source)],
        )
        results: Any = [extract.output, materialise.output]
        check_tables(source=source, results=results)
        alarm(check_runway(source=source, interval=interval), settings)
        set_params(dag, {"until": text_param("Until", _UNTIL), "now": flag_param("Now", _NOW)})
    return dag
