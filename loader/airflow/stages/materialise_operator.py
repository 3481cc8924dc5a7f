"""The second task of a delta: merges, and loads of captured tables that it finds unloaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import XComArg

from loader.airflow.stages.delta_stages import DeltaStagesOperator
from loader.airflow.stages.extract_operator import handed_over

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.settings import SourceSettings


class MaterialiseOperator(DeltaStagesOperator):
    """Applies staged changes, then loads new tables if `auto_load` is set and they are small. It names all others.

    Both are one task, because the start of a task takes seconds.

    Args:
        source: its name. (templated)
        staged: the result of the task `extract`. (templated)
        interval: the result of the task `plan_interval`. (templated)
        kwargs: see LoaderSparkOperator.
    """

    template_fields = (*DeltaStagesOperator.template_fields, "interval")

    def __init__(self, *, source: str, staged: XComArg, interval: XComArg, **kwargs: Any) -> None:
        super().__init__(use_case="materialise", source=source, arguments=staged, **kwargs)
        self.interval: Any = interval
        self._extract = next((task.task_id for task, _ in XComArg.iter_xcom_references(staged)), "")

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        merged = handed_over(context, self._extract)["tables"]
        return self._merge(context, settings, merged, (self.interval or {}).get("listed"))

    def _new_work(self, context: Context, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """See LoaderSparkOperator. The first try counted the merges of the task `extract`."""
        if super()._tries(context) == 1:
            return result
        counted = handed_over(context, self._extract)["tables"]
        return {**result, "tables": [table for table in result["tables"] if table not in counted]}

    def _tries(self, context: Context) -> int:
        return max(super()._tries(context), int(handed_over(context, self._extract)["tries"]))
