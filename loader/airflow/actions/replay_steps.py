"""The tasks of the DAG `replay`. Each decides by the form whether it has something to do, and is skipped if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from loader.airflow.actions.replay_form import approver, differing, question, reason_to_skip, start_of
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.reports.errors import reported
from loader.airflow.run_conf import refuse_unknown_conf
from loader.airflow.versions import AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg


class RestoreFilesOperator(LoaderSparkOperator):
    """Restores lost and changed staged files of all intervals after the start of the form. See `loader replay`."""

    def __init__(self, *, source: str, form: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(use_case="restore", source=source, arguments=form, **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Restore the files, one interval after the other.

        Raises:
            TaskFailed: the form is wrong, or files cannot be restored.
        """
        from loader import pipeline
        from loader.airflow.sources import settings_of

        with reported(context):
            refuse_unknown_conf(context)
            form = dict(self.arguments)
            start = start_of(form)
            _skip(reason_to_skip("restore_files", form))
            settings = settings_of(self.source)
            found = pipeline.find_replay_start(settings, start)
            intervals = pipeline.intervals_since(settings, found.seqno)
        files = 0
        for interval in intervals:
            self.arguments = {"position": str(interval)}
            files += super().execute(context)["files"]
        return {"start": found.position, "intervals": len(intervals), "files": files}


class ReplayOperator(LoaderSparkOperator):
    """Compares tables with their changes in the log, or corrects them.

    Args:
        source: its name. (templated)
        form: the fields of the form of the DAG `replay`. (templated)
        publish: correct the tables if the form and the answer allow it. Otherwise only compare them.
        answer: the result of the task that asked for approval. (templated)
        kwargs: see LoaderSparkOperator.
    """

    template_fields: Sequence[str] = (*LoaderSparkOperator.template_fields, "answer")

    def __init__(
        self, *, source: str, form: dict[str, Any], publish: bool, answer: XComArg | None = None, **kwargs: Any
    ) -> None:
        super().__init__(use_case="replay", source=source, arguments=form, **kwargs)
        self.publish = publish
        self.answer: Any = answer

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Compare or correct the tables, unless the form says otherwise.

        Raises:
            TaskFailed: the form is wrong, or tables could not be replayed.
        """
        with reported(context):
            refuse_unknown_conf(context)
            form = dict(self.arguments)
            start = start_of(form)
            _skip(reason_to_skip("publish" if self.publish else "compare", form, self.answer))
        by = approver(self.answer)
        self.arguments = {"start": start, "tables": form["tables"], "dry_run": not self.publish, "approved_by": by}
        return super().execute(context)


class ApproveReplayOperator(ApprovalOperator):
    """Shows the differences that a comparison found, and asks whether to correct the tables. It holds no slot.

    No answer in time means no.

    Args:
        form: the fields of the form of the DAG `replay`. (templated)
        compared: the result of the comparison. (templated)
        kwargs: of ApprovalOperator.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "form", "compared")

    def __init__(self, *, form: dict[str, Any], compared: XComArg, **kwargs: Any) -> None:
        super().__init__(subject="Correct the tables?", defaults=self.REJECT, **kwargs)
        self.form = form
        self.compared: Any = compared

    def execute(self, context: Context) -> Any:
        """Ask, unless the form does not want that or no table differs.

        Raises:
            AirflowSkipException: there is nothing to ask.
        """
        _skip(reason_to_skip("approve", self.form, self.compared))
        count = len(differing(self.compared))
        self.subject = f"Correct {count} table{'s' if count > 1 else ''}?"
        self.body = question(self.compared)
        return super().execute(context)


def _skip(reason: str) -> None:
    if reason:
        raise AirflowSkipException(reason)
