"""Restores staged files in a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loader.airflow.operators import LoaderSparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.settings import SourceSettings


class StagedFilesOperator(LoaderSparkOperator):
    """Can restore staged files. Subclasses do it before a replay."""

    def _restore(self, context: Context, settings: SourceSettings, start: str) -> dict[str, Any]:
        """Restore lost and changed staged files of all intervals after a place, one interval after the other."""
        from loader import pipeline

        found = pipeline.find_replay_start(settings, start)
        intervals = pipeline.intervals_since(settings, found.seqno)
        files = 0
        for interval in intervals:
            self.use_case, self.arguments = "restore", {"position": str(interval)}
            files += self._stage(context, settings)["files"]
        return {"start": found.position, "intervals": len(intervals), "files": files}
