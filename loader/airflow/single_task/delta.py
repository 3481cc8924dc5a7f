"""One task that brings the tables of a source up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loader.airflow.reports.errors import QUARANTINED, is_tried_again, reported
from loader.airflow.single_task.defaults import with_defaults
from loader.airflow.stages.delta_stages import DeltaStagesOperator
from loader.airflow.stages.run_plan import plan_run

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.settings import SourceSettings


class BinlogDeltaOperator(DeltaStagesOperator):
    """Applies everything that is new in the binary log of a source to its tables, as `loader run` does.

    The result has the interval (`start`, `stop`, `stop_seqno`), the results of the tables (`tables`), the names of
    captured tables that are not loaded (`unloaded`), and `caught_up`: whether nothing that was planned is left for the
    next run. Events of the tables' assets, metrics and lineage are those of the DAG `SOURCE.delta`.

    A retry or a cleared task gets the same intervals again, and finds what is done. After a task that failed, the next
    one continues where it stopped. Killing the task kills its Spark application.

    Args:
        source: name of the source in the configuration.
        until: stop there: `binlog.000054:123`, a GTID set, or before a time such as `{{ data_interval_end }}`; empty
            for the end of the log. (templated)
        now: also merge tables that are not due by their rules. (templated)
        fail_on_tables: fail if tables failed or are quarantined, after all other tables are up to date. If False, fail
            only as long as a retry can help.
        kwargs: of BaseOperator, and `conn_id` of the Spark connection. By default pool, retries, time limit and so on
            are those of the source's DAGs.

    Raises:
        UsageError: the configuration is wrong, or has no such source.
    """

    template_fields: Sequence[str] = ("until", "now")
    refuses_unknown_conf = False

    def __init__(self, *, source: str, until: str = "", now: Any = False, **kwargs: Any) -> None:
        super().__init__(
            use_case="extract", source=source, arguments={}, now=now, **with_defaults(source, "delta", kwargs)
        )
        self.until = until

    def _perform(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader.airflow.reports.run_report import find_short_runway

        ti = context["ti"]
        interval = plan_run(settings, f"{ti.dag_id}/{ti.run_id}/{ti.task_id}/{ti.map_index}", self.until)
        if interval is None:
            self.log.info("the log has nothing after the initial load")
            return _nothing_new(settings)
        self.use_case, self.arguments = "extract", interval
        staged = self._stage(context, settings)
        self._listed = interval["listed"]
        self.use_case, self.arguments = "materialise", staged
        merged = self._stage(context, settings)
        runway, _ = find_short_runway(context, settings, interval)
        for line in str(runway or "").splitlines():
            self.log.warning("%s", line)
        caught_up = staged["stop_seqno"] >= interval["through_seqno"]
        if not caught_up:
            self.log.warning(
                "planned intervals are left for the next run: run_minutes is over, or one cannot be staged"
            )
        self._check(context, settings, staged, merged)
        return {**merged, "start": staged["start"], "caught_up": caught_up}

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        if self.use_case == "extract":
            return super()._result(context, settings)
        return self._merge(context, settings, self._merged, self._listed)

    def _check(self, context: Context, settings: SourceSettings, *results: dict[str, Any]) -> None:
        """Report the run. Fail for its tables, and for an interval that could not be staged after others."""
        from loader.airflow.reports.run_report import mark_notified_tables, report_run
        from loader.spark.job import rebuild

        with reported(context, QUARANTINED):
            failed, named = report_run(context, settings, results)
            if failed and (self.fail_on_tables or is_tried_again(failed, context)):
                mark_notified_tables(context, settings, named)
                raise failed
        if unstaged := results[0].get("failed"):
            raise rebuild(unstaged)


def _nothing_new(settings: SourceSettings) -> dict[str, Any]:
    """Return the result of a log that ends where the chain begins."""
    from loader.pipeline import chain_of

    begun = chain_of(settings).require_generation()
    seqno = begun.start_position.seqno(begun.shift)
    return {"start": begun.start, "stop": begun.start, "stop_seqno": seqno, "caught_up": True, "tables": []}
