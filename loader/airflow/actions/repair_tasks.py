"""The tasks of the DAG `repair` that need no Spark. Each calls the same use case as a command."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task

from loader.airflow.actions.repair_form import check_form
from loader.airflow.form_params import clean_form
from loader.airflow.linked_task import linked_task
from loader.airflow.reports.errors import reported
from loader.airflow.run_conf import refuse_unknown_conf
from loader.airflow.versions import AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.staging.documents import Generation

_LOG = logging.getLogger(__name__)
_TASKS = {"load_again": "read_tables_again", "skip": "approve_skip"}
"""Ids of the tasks of actions, where they differ."""


@task.branch
def choose_repair() -> str:
    """Check the form of the run, and choose the task of its action. The others are skipped."""
    context = get_current_context()
    with reported(context):
        refuse_unknown_conf(context)
        action = check_form(clean_form(context["params"]))
    return _TASKS.get(action, action)


def check_chosen(action: str, context: Context) -> None:
    """Skip a task if the form of the run names another action.

    If a person marks `choose_repair` as success, it has chosen nothing, and Airflow starts every task after it.

    Raises:
        AirflowSkipException: the form names another action.
        TaskFailed: the form is wrong, or the conf of the run has other keys.
    """
    with reported(context):
        refuse_unknown_conf(context)
        chosen = check_form(clean_form(context["params"]))
        if chosen != action:
            raise AirflowSkipException(f"the form asks for {chosen}")


@linked_task
def release(source: str) -> list[str]:
    """End the quarantine of the named tables, or of all. Return the released tables."""
    from loader.airflow.sources import settings_of
    from loader.model.table import TableName
    from loader.pipeline import quarantines_of
    from loader.pipeline import release as end_quarantine

    context = get_current_context()
    with reported(context):
        settings = settings_of(source)
        named = clean_form(context["params"])["tables"] or [""]  # an empty name means all tables
        if context["ti"].try_number > 1:  # an earlier try may have released some
            named = [table for table in named if not table or TableName.parse(table) in quarantines_of(settings).all()]
        released = [one for table in named for one in end_quarantine(settings, table)]
    for quarantine in released:
        _LOG.info("released %s, quarantined since %s: %s", quarantine.table, quarantine.since, quarantine.error["what"])
    return [quarantine.table for quarantine in released]


@linked_task(multiple_outputs=False)
def follow(source: str) -> dict[str, Any]:
    """Continue on another server. Return the generation of the log that begins there."""
    from loader.airflow.connections import secret
    from loader.airflow.sources import settings_of
    from loader.model.position import Position
    from loader.pipeline import follow_accepting, follow_to

    context = get_current_context()
    with reported(context):
        settings = settings_of(source)
        params = clean_form(context["params"])
        position, accept = params["position"], params["accept"]
        with secret(settings.server.password):
            new = follow_to(settings, Position.parse(position)) if position else follow_accepting(settings, accept)
    return _summary(new)


@linked_task(multiple_outputs=False)
def begin(source: str) -> dict[str, Any]:
    """Begin to read the log at a place. Return the generation of the log that begins there."""
    from loader.airflow.connections import secret
    from loader.airflow.sources import settings_of
    from loader.pipeline import begin_at

    context = get_current_context()
    with reported(context):
        settings = settings_of(source)
        with secret(settings.server.password):
            new = begin_at(settings, clean_form(context["params"])["place"])
    return _summary(new)


@linked_task(multiple_outputs=False)
def set_schema(source: str) -> dict[str, str]:
    """Set the columns of a table from a position on. Return both."""
    from loader.airflow.sources import settings_of
    from loader.model.table import TableName
    from loader.pipeline import set_table_schema

    context = get_current_context()
    with reported(context):
        params = clean_form(context["params"])
        (table,) = params["tables"]
        given = set_table_schema(settings_of(source), TableName.parse(table), params["position"], params["definition"])
    _LOG.info("the columns of %s are set from %s on", table, given.at)
    return {"table": table, "position": given.at}


def _summary(new: Generation) -> dict[str, Any]:
    """Log a generation of the log, and return what the task returns of it."""
    _LOG.info("generation %s of the log starts at %s of %s", new.name, new.start, new.identity)
    return {"generation": new.name, "start": new.start}
