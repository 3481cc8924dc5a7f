"""The tasks of the DAG `repair` that skip a transaction: find it, ask a person, record it, stage the other rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from loader.airflow.actions.replay_form import approver, table_rows
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.reports.errors import reported
from loader.visible_text import visible

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

_LOG = logging.getLogger(__name__)
_COLUMNS = ("table", "events", "inserts", "updates", "deletes")


@task(multiple_outputs=False)
def find_transaction(source: str) -> dict[str, Any]:
    """Return the rows that skipping the transaction of the form would leave out. Nothing is recorded."""
    from loader import pipeline
    from loader.airflow.connections import secret
    from loader.airflow.sources import settings_of

    context = get_current_context()
    with reported(context):
        settings, params = settings_of(source), context["params"]
        with secret(settings.server.password):
            found = pipeline.find_skippable(settings, params["transaction"], tuple(params["tables"] or ()))
    return found.model_dump(mode="json")


class ApproveSkipOperator(ApprovalOperator):
    """Shows the rows that would be left out, and asks whether to skip them. It holds no slot.

    No answer in time means no.

    Args:
        found: the result of `find_transaction`. (templated)
        reason: of the form. (templated)
        kwargs: of ApprovalOperator.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "found", "reason")

    def __init__(self, *, found: XComArg, reason: Any, **kwargs: Any) -> None:
        super().__init__(subject="Skip these rows?", defaults=self.REJECT, **kwargs)
        self.found: Any = found
        self.reason = reason

    def execute(self, context: Context) -> Any:
        """Ask."""
        self.subject = f"Skip a transaction at {self.found['start']}?"
        self.body = question(self.found, self.reason)
        return super().execute(context)


def question(found: Mapping[str, Any], reason: str) -> str:
    """Return what is skipped, as Markdown."""
    gtid = f", GTID {found['gtid']}" if found["gtid"] else ""
    lines = [f"The transaction from {found['start']} to {found['stop']}{gtid}.", ""]
    lines += table_rows(_COLUMNS, found["tables"])
    lines += ["", "The tables lack these rows until they are loaded again.", "", "Reason:", "", "```"]
    return "\n".join([*lines, visible(reason).replace("```", "'''"), "```"])


@task(multiple_outputs=False)
def skip(source: str, found: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Record that these rows are skipped, in the name of the person who approved it. Return what is recorded.

    Raises:
        AirflowSkipException: nobody approved it.
    """
    from loader import pipeline
    from loader.airflow.connections import secret
    from loader.airflow.sources import settings_of

    by, context = approver(answer), get_current_context()
    if not by:
        raise AirflowSkipException("nobody approved it")
    with reported(context):
        settings, params = settings_of(source), context["params"]
        tables = tuple(params["tables"] or ())
        with secret(settings.server.password):
            recorded = pipeline.skip_transaction(settings, found["start"], tables, reason=params["reason"], by=by)
    for one in recorded.records:
        _LOG.info("skipped at %s by %s: %s", one.start, one.by, ", ".join(one.tables))
    return recorded.model_dump(mode="json") | {"through_seqno": 0}


class StageRowsOperator(LoaderSparkOperator):
    """Stages the other rows of tables that an interval had left out for rows that are skipped now."""

    def __init__(self, *, source: str, recorded: Any, **kwargs: Any) -> None:
        super().__init__(use_case="extract", source=source, arguments=recorded, **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Stage the rows.

        Raises:
            AirflowSkipException: the next delta stages the interval.
            TaskFailed: more rows cannot be staged.
        """
        if not self.arguments["staged"]:
            raise AirflowSkipException("the next delta stages the interval")
        return super().execute(context)
