"""The merges of a delta in Airflow, and the loads of captured tables that it finds unloaded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import XComArg

from loader.airflow.merge_handover import handed_over, with_handed_over
from loader.airflow.operators import LoaderSparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)


class MaterialiseOperator(LoaderSparkOperator):
    """Applies staged changes, then loads new tables if `auto_load` is set and they are small. It names all others.

    Both are one task, because the start of a task takes seconds. Without a table to load, no second Spark starts.

    Args:
        source: its name. (templated)
        staged: the result of the task `extract`. (templated)
        interval: the result of the task `plan_interval`. (templated)
        kwargs: see LoaderSparkOperator.
    """

    template_fields = (*LoaderSparkOperator.template_fields, "interval")

    def __init__(self, *, source: str, staged: XComArg, interval: XComArg, **kwargs: Any) -> None:
        super().__init__(use_case="materialise", source=source, arguments=staged, **kwargs)
        self.interval: Any = interval
        self._extract = next((task.task_id for task, _ in XComArg.iter_xcom_references(staged)), "")

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader import pipeline
        from loader.airflow.connections import secrets_of
        from loader.full_load.table_results import with_new_tables

        merged = with_handed_over(super()._result(context, settings), handed_over(context, self._extract))
        listed = self.interval.get("listed")
        with secrets_of(settings):
            found = pipeline.find_unloaded(settings, pipeline.ListedTables.model_validate(listed) if listed else None)
        for one in found:
            _LOG.warning("%s", one.note)
        names = [one.table for one in found if one.action == "load"]
        loaded = self._loaded(context, settings, names) if names else None
        refused = {one.table: one.error for one in found if one.error}
        unloaded = [one.table for one in found if one.action != "load"]
        return {**with_new_tables(merged, loaded, refused), **({"unloaded": unloaded} if unloaded else {})}

    def _tries(self, context: Context) -> int:
        return max(super()._tries(context), int(handed_over(context, self._extract)["tries"]))

    def _loaded(self, context: Context, settings: SourceSettings, names: list[str]) -> dict[str, Any]:
        """Load tables, and return the result of the job."""
        staged, spec = self.arguments, self._spec  # what lineage and events of assets are about
        try:
            self.use_case, self.arguments = "load_new_tables", {"tables": names}
            return super()._result(context, settings)
        finally:
            self.use_case, self.arguments, self._spec = "materialise", staged, spec
