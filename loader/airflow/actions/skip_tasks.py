"""The tasks of the DAG `repair` that skip a transaction, or withdraw a skip.

A skip is shown to a person, then recorded, and the other rows are staged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import get_current_context

from loader.airflow.actions.replay_form import approver, table_rows
from loader.airflow.actions.run_user import run_user
from loader.airflow.form_params import clean_form
from loader.airflow.linked_task import linked_task
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.reports.errors import reported
from loader.airflow.versions import AirflowSkipException
from loader.visible_text import visible

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

_LOG = logging.getLogger(__name__)
FIELDS = ("transaction", "tables", "reason")
"""The fields of the form."""
_COLUMNS = ("table", "events", "inserts", "updates", "deletes")


class ApproveSkipOperator(ApprovalOperator):
    """Finds the transaction of the form, shows its rows, and asks whether to skip them. It holds no slot.

    Before Airflow 3.3 it waits in the triggerer. No answer in time means no.

    Args:
        source: its name. (templated)
        form: the fields of the form. (templated)
        kwargs: of ApprovalOperator.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "source", "form")

    def __init__(self, *, source: str, form: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(subject="Skip these rows?", defaults=self.REJECT, **kwargs)
        self.source = source
        self.form = form

    def execute(self, context: Context) -> Any:
        """Find the transaction, and ask.

        Raises:
            TaskFailed: the transaction cannot be skipped.
        """
        from loader import pipeline
        from loader.airflow.connections import secret
        from loader.airflow.sources import settings_of

        form = clean_form(self.form)
        with reported(context):
            settings = settings_of(self.source)
            with secret(settings.server.password):
                found = pipeline.find_skippable(settings, form["transaction"], tuple(form["tables"] or ()))
        self.subject = f"Skip a transaction at {found.start}?"
        self.body = question(found.model_dump(mode="json"), form["reason"])
        return super().execute(context)


def question(found: Mapping[str, Any], reason: str) -> str:
    """Return what is skipped, as Markdown."""
    gtid = f", GTID {found['gtid']}" if found["gtid"] else ""
    lines = [f"The transaction from {found['start']} to {found['stop']}{gtid}.", ""]
    lines += table_rows(_COLUMNS, found["tables"])
    lines += ["", "The tables lack these rows until they are loaded again.", "", "Reason:", "", "```"]
    return "\n".join([*lines, visible(reason).replace("```", "'''"), "```"])


class SkipOperator(LoaderSparkOperator):
    """Records that rows are skipped, in the name of the person who approved it.

    If their interval is staged without them, the other rows of their tables are staged.

    Args:
        source: its name. (templated)
        form: the fields of the form. (templated)
        answer: the result of the task that asked for approval. (templated)
        kwargs: see LoaderSparkOperator.
    """

    template_fields: Sequence[str] = (*LoaderSparkOperator.template_fields, "form", "answer")

    def __init__(self, *, source: str, form: dict[str, Any], answer: XComArg, **kwargs: Any) -> None:
        super().__init__(use_case="extract", source=source, arguments={}, **kwargs)
        self.form = form
        self.answer: Any = answer

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Record what is skipped, and stage the other rows.

        Raises:
            AirflowSkipException: nobody approved it.
            TaskFailed: the transaction cannot be skipped any more, or more rows cannot be staged.
        """
        from loader import pipeline
        from loader.airflow.connections import secret
        from loader.airflow.sources import settings_of

        by = approver(self.answer)
        if not by:
            raise AirflowSkipException("nobody approved it")
        with reported(context):
            settings, form = settings_of(self.source), clean_form(self.form)
            with secret(settings.server.password):
                found = pipeline.skip_transaction(
                    settings, form["transaction"], tuple(form["tables"] or ()), reason=form["reason"], by=by
                )
        for one in found.records:
            self.log.info("skipped at %s by %s: %s", one.start, one.by, ", ".join(one.tables))
        if found.staged:
            self.arguments = {"start_seqno": found.start_seqno, "through_seqno": 0}
            super().execute(context)
        return found.model_dump(mode="json")


@linked_task
def withdraw_skip(source: str) -> list[str]:
    """Withdraw skips that no plan has yet. Return the tables whose rows are staged after all."""
    from loader import pipeline
    from loader.airflow.sources import settings_of

    context = get_current_context()
    with reported(context):
        params, by = clean_form(context["params"]), run_user(context)
        found = pipeline.withdraw_skip(
            settings_of(source), params["transaction"], tuple(params["tables"] or ()), reason=params["reason"], by=by
        )
    for one in found:
        _LOG.info("the skip at %s of rows of %s is withdrawn %s", one.start, ", ".join(one.tables), one.why)
    return sorted({table for one in found for table in one.tables})
