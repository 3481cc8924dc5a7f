"""The tasks of the DAG `replay`. Each decides by the form whether it has something to do, and is skipped if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from loader.airflow.actions.replay_form import approver, differing, end_of, question, reason_to_skip, start_of
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.stages.staged_files import StagedFilesOperator
from loader.airflow.versions import AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

    from loader.settings import SourceSettings


class RestoreFilesOperator(StagedFilesOperator):
    """Restores lost and changed staged files of all intervals after the start of the form. See `loader replay`."""

    def __init__(self, *, source: str, form: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(use_case="restore", source=source, arguments=form, **kwargs)

    def _perform(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        form = dict(self.arguments)
        start = start_of(form)
        _skip(reason_to_skip("restore_files", form))
        return self._restore(context, settings, start)


class ReplayFormOperator(LoaderSparkOperator):
    """Compares tables with their changes in the log, or corrects them, as the form says.

    Args:
        source: its name. (templated)
        form: the fields of the form of the DAG `replay`. (templated)
        publish: correct the tables if the form and the answer allow it. Otherwise only compare them.
        compared: the result of the comparison that was approved: no other tables are corrected. (templated)
        answer: the result of the task that asked for approval. (templated)
        kwargs: see LoaderSparkOperator.
    """

    template_fields: Sequence[str] = (*LoaderSparkOperator.template_fields, "compared", "answer")

    def __init__(
        self,
        *,
        source: str,
        form: dict[str, Any],
        publish: bool,
        compared: XComArg | None = None,
        answer: XComArg | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(use_case="replay", source=source, arguments=form, **kwargs)
        self.publish = publish
        self.compared: Any = compared
        self.answer: Any = answer

    def _perform(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        form = dict(self.arguments)
        start = start_of(form)
        _skip(reason_to_skip("publish" if self.publish else "compare", form, self.answer))
        by = approver(self.answer)
        seen = [table["table"] for table in differing(self.compared or {})] if by else []
        replayed = {"start": start, "end": end_of(form), "tables": seen or form["tables"]}
        self.arguments = {**replayed, "dry_run": not self.publish, "approved_by": by}
        return super()._perform(context, settings)


class ApproveReplayOperator(ApprovalOperator):
    """Shows the differences that a comparison found, and asks whether to correct the tables. It holds no slot.

    Before Airflow 3.3 it waits in the triggerer. No answer in time means no.

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
