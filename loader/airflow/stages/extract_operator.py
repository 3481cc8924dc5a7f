"""The first task of a delta. On a cluster it also merges, and hands the results over to the task `materialise`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loader.airflow.stages.delta_stages import DeltaStagesOperator

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

    from loader.settings import SourceSettings

HANDOVER = "merged"  # XCom key


class ExtractOperator(DeltaStagesOperator):
    """Stages intervals. On a cluster, the same Spark application then merges them.

    Args:
        source: its name. (templated)
        interval: the result of the task `plan_interval`. (templated)
        kwargs: see LoaderSparkOperator.
    """

    def __init__(self, *, source: str, interval: XComArg, **kwargs: Any) -> None:
        super().__init__(use_case="extract", source=source, arguments=interval, **kwargs)

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader.airflow.connections import spark_settings

        staged = super()._result(context, settings)
        if not spark_settings(settings.spark, self._conn_id).local:
            context["ti"].xcom_push(key=HANDOVER, value={"tables": self._merged, "tries": self._tries(context)})
        return staged


def handed_over(context: Context, task: str) -> Mapping[str, Any]:
    """Return what a task handed over: `tables`, the results of its merges, and `tries`, its number of tries."""
    found: Mapping[str, Any] | None = context["ti"].xcom_pull(task_ids=task, key=HANDOVER) if task else None
    return found or {"tables": [], "tries": 0}
