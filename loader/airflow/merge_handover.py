"""On a cluster, the task `extract` also merges what it staged, and hands the results over to the task `materialise`.

So a run starts one Spark application, as `loader run` does. The task `materialise` finds the record that the
application published, and reports the merges as its own. If the merge failed, it merges again and shows the error.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loader.airflow.operators import LoaderSparkOperator
from loader.errors import LoaderError

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

    from loader.pipeline import Job
    from loader.settings import SourceSettings
    from loader.spark.submit import SparkSettings

HANDOVER = "merged"  # XCom key
_LOG = logging.getLogger(__name__)
_HANDED_OVER = {"applied", "unchanged"}


class ExtractOperator(LoaderSparkOperator):
    """Stages intervals. On a cluster, the same Spark application then merges them; see the module.

    Args:
        source: its name. (templated)
        interval: the result of the task `plan_interval`. (templated)
        kwargs: see LoaderSparkOperator.
    """

    def __init__(self, *, source: str, interval: XComArg, **kwargs: Any) -> None:
        super().__init__(use_case="extract", source=source, arguments=interval, **kwargs)
        self._merged: list[dict[str, Any]] = []

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader.airflow.connections import spark_settings

        staged = super()._result(context, settings)
        if not spark_settings(settings.spark, self._conn_id).local:
            context["ti"].xcom_push(key=HANDOVER, value={"tables": self._merged, "tries": self._tries(context)})
        return staged

    def _submitted(self, context: Context, job: Job, spark: SparkSettings) -> dict[str, Any]:
        from loader.airflow.finished_work import done_before
        from loader.extract.spec import ExtractResult, backlog_result
        from loader.spark.job import rebuild

        try:
            result = super()._submitted(context, self._delta(spark), spark)
        except LoaderError as error:
            staged = done_before(job)
            if staged is None:
                raise
            _warn(error)  # such as a driver without memory for the merge
            return staged
        self._merged = result["materialise"]["tables"]
        if result["unmerged"]:
            _warn(rebuild(result["unmerged"]))
        extracts = [ExtractResult.model_validate(one) for one in result["extracts"]]
        return backlog_result(extracts, result["failed"]).model_dump(mode="json")

    def _delta(self, spark: SparkSettings) -> Job:
        from loader import pipeline
        from loader.airflow.sources import settings_of

        settings = settings_of(self.source).model_copy(update={"spark": spark})
        start, through = self.arguments["start_seqno"], self.arguments["through_seqno"]
        return pipeline.delta_job(settings, start, through, now=bool(self.now), report_unmerged=True)


def _warn(error: LoaderError) -> None:
    for line in f"everything is staged, and the task materialise merges it again: {error}".splitlines():
        _LOG.warning("%s", line)


def handed_over(context: Context, task: str) -> Mapping[str, Any]:
    """Return what a task handed over: `tables`, the results of its merges, and `tries`, its number of tries."""
    found: Mapping[str, Any] | None = context["ti"].xcom_pull(task_ids=task, key=HANDOVER) if task else None
    return found or {"tables": [], "tries": 0}


def with_handed_over(result: Mapping[str, Any], handover: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a merge, in which tables that were merged already have the result of that merge."""
    merged = {table["table"]: table for table in handover["tables"] if table["status"] in _HANDED_OVER}
    tables = [
        merged.get(table["table"], table) if table["status"] == "already" else table for table in result["tables"]
    ]
    return {**result, "tables": tables}
