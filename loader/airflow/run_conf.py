"""Checks of a run: Airflow silently accepts unknown keys of its conf. Runs of a backfill get an error that helps."""

from __future__ import annotations

import logging
from datetime import UTC
from typing import TYPE_CHECKING, NoReturn

from loader.airflow.reports.failure_notifier import NOTIFIED
from loader.airflow.versions import AirflowSkipException
from loader.dag_settings import dag_key
from loader.errors import LoaderError, UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)


def refuse_unknown_conf(context: Context) -> None:
    """Refuse a run whose conf has a key that is no param of the DAG.

    Raises:
        UsageError: a key is unknown.
        AirflowSkipException: a key is unknown, and a failed run would pause the DAG. The run is skipped, so that a
            typing error in one run does not stop the scheduled runs.
    """
    dag = context["dag"]
    known = set(dag.params)
    unknown = sorted(set(context["dag_run"].conf or {}) - known)
    if not unknown:
        return
    error = UsageError(
        f"the run's conf has unknown keys: {', '.join(unknown)}",
        hint=f"trigger a new run; the params of this DAG are {', '.join(sorted(known)) or 'none'}",
        dag=dag.dag_id,
    )
    _refuse(error, context)


def refuse_backfill(context: Context, settings: SourceSettings) -> None:
    """Refuse a run of a backfill by date, and name the form of the replay with the position of that date.

    Its failure calls no notifier: the person who started the backfill sees the error, and the source is not broken.

    Raises:
        UsageError: the run belongs to a backfill.
        AirflowSkipException: it does, and a failed run would pause the DAG.
    """
    run = context["dag_run"]
    if run.run_type != "backfill" or run.logical_date is None:
        return
    date = f"{run.logical_date.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    error = UsageError(
        "this DAG cannot be backfilled by date",
        why="the dates of a run select no part of the log",
        hint=f"trigger {dag_key(settings.name)}.replay with from = {date}{_position_of(date, settings)}",
        source=settings.name,
    )
    context["ti"].xcom_push(key=NOTIFIED, value=True)
    _refuse(error, context)


def _position_of(date: str, settings: SourceSettings) -> str:
    """Return the log position of a date in words; empty if nothing is staged after it."""
    from loader.pipeline import find_replay_start

    try:
        return f", which is {find_replay_start(settings, date).position}"
    except LoaderError:
        return ""


def _refuse(error: LoaderError, context: Context) -> NoReturn:
    if not context["dag"].max_consecutive_failed_dag_runs:
        raise error
    for line in str(error).splitlines():
        _LOG.error("%s", line)
    raise AirflowSkipException(error.what)
