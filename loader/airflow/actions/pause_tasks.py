"""The tasks of the DAG `repair` that pause and resume tables."""

from __future__ import annotations

import logging

from airflow.sdk import get_current_context

from loader.airflow.actions.run_user import run_user
from loader.airflow.form_params import clean_form
from loader.airflow.linked_task import linked_task
from loader.airflow.reports.errors import reported

_LOG = logging.getLogger(__name__)


@linked_task
def pause(source: str) -> list[str]:
    """Stop merging tables from the next run on. Return the paused tables."""
    from loader.airflow.sources import settings_of
    from loader.pipeline import pause as begin_pause

    context = get_current_context()
    with reported(context):
        params, by = clean_form(context["params"]), run_user(context)
        paused = begin_pause(settings_of(source), params["tables"], by, params["reason"])
    for one in paused:
        _LOG.info("%s is %s", one.table, one.note)
    return [one.table for one in paused]


@linked_task
def resume(source: str) -> list[str]:
    """Let the next run merge paused tables again. Return the resumed tables."""
    from loader.airflow.sources import settings_of
    from loader.pipeline import pauses_of
    from loader.pipeline import resume as end_pause
    from loader.staging.filters import matches

    context = get_current_context()
    with reported(context):
        settings, patterns = settings_of(source), clean_form(context["params"])["tables"]
        if context["ti"].try_number > 1:  # an earlier try may have resumed some
            paused = pauses_of(settings).all()
            patterns = [pattern for pattern in patterns if any(matches(table, [pattern]) for table in paused)]
        resumed = end_pause(settings, patterns)
    for one in resumed:
        _LOG.info("resumed %s, %s", one.table, one.note)
    return [one.table for one in resumed]
