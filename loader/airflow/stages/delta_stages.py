"""The two stages of a delta, staging and merging. The DAG `delta` has a task for each; one operator does both.

On a cluster, one Spark application does both, as `loader run` does: it merges what it staged, and hands the results
over. The second stage finds the record that the application published, and reports these merges as its own. If the
merge failed, the second stage merges again and shows the error.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.stages.template_values import flag
from loader.dag_settings import dag_key
from loader.errors import LoaderError
from loader.visible_text import visible

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.pipeline import Job
    from loader.settings import SourceSettings
    from loader.spark.settings import SparkSettings

_LOG = logging.getLogger(__name__)
_HANDED_OVER = {"applied", "unchanged"}


class DeltaStagesOperator(LoaderSparkOperator):
    """Has the stages of a delta. Subclasses run one of them, or both.

    Args:
        kwargs: see LoaderSparkOperator.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._merged: list[dict[str, Any]] = []

    def _submitted(self, context: Context, job: Job, spark: SparkSettings) -> dict[str, Any]:
        """Run the job. If it extracts, its application also merges, and `_merged` has the results of its tables."""
        from loader.airflow.finished_work import done_before
        from loader.extract.spec import ExtractResult, backlog_result
        from loader.spark.job import rebuild

        if job.name != "extract":
            return super()._submitted(context, job, spark)
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
        return pipeline.delta_job(settings, start, through, now=flag("now", self.now), report_unmerged=True)

    def _merge(
        self, context: Context, settings: SourceSettings, merged: list[dict[str, Any]], listed: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Merge, then load new tables if `auto_load` is set and they are small. Log the names of all others.

        Without a table to load, no second Spark starts.

        Args:
            context: of the task.
            settings: of the source.
            merged: results of tables that the application of the first stage merged.
            listed: ListedTables as JSON: the captured tables before the interval was planned.
        """
        from loader import pipeline
        from loader.airflow.actions.command_forms import in_airflow
        from loader.airflow.connections import secrets_of
        from loader.full_load.table_results import with_new_tables

        result = with_handed_over(super()._result(context, settings), merged)
        with secrets_of(settings):
            found = pipeline.find_unloaded(settings, pipeline.ListedTables.model_validate(listed) if listed else None)
        for one in found:
            _LOG.warning("%s", one.note)
            if form := in_airflow(one.note, dag_key(settings.name)):
                _LOG.warning("  %s", visible(form))
        names = [one.table for one in found if one.action == "load"]
        loaded = self._loaded(context, settings, names) if names else None
        refused = {one.table: one.error for one in found if one.error}
        unloaded = [one.table for one in found if one.action != "load"]
        return {**with_new_tables(result, loaded, refused), **({"unloaded": unloaded} if unloaded else {})}

    def _loaded(self, context: Context, settings: SourceSettings, names: list[str]) -> dict[str, Any]:
        """Load tables, and return the result of the job."""
        use_case, staged, spec = (
            self.use_case,
            self.arguments,
            self._spec,
        )  # what lineage and events of assets are about
        try:
            self.use_case, self.arguments = "initial_load", {"tables": names}
            return super()._result(context, settings)
        finally:
            self.use_case, self.arguments, self._spec = use_case, staged, spec


def _warn(error: LoaderError) -> None:
    for line in f"everything is staged, and the merge is tried again: {error}".splitlines():
        _LOG.warning("%s", line)


def with_handed_over(result: Mapping[str, Any], handed_over: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the result of a merge, in which tables that were merged already have the result of that merge."""
    merged = {table["table"]: table for table in handed_over if table["status"] in _HANDED_OVER}
    tables = [
        merged.get(table["table"], table) if table["status"] == "already" else table for table in result["tables"]
    ]
    return {**result, "tables": tables}
