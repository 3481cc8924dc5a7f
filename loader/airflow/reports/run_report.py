"""What a run did: its note, gauges and notifications, and the error of the tables that it leaves behind."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loader.airflow.reports.failure_notifier import NOTIFIED
from loader.airflow.reports.failures import errors_of, failure
from loader.airflow.reports.metrics import report_lag
from loader.airflow.reports.notifications import SourceNotifier, notify
from loader.airflow.reports.run_note import NOTE, run_note
from loader.errors import LoaderError
from loader.pipeline import quarantines_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.pipeline import SourceLag
    from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)


def report_run(
    context: Context, settings: SourceSettings, results: Sequence[dict[str, Any]]
) -> tuple[LoaderError | None, list[str]]:
    """Write the note of the run, send gauges and notify of the lag. Return the error of its tables, and their names.

    Tables that are left behind on purpose, such as paused tables, are logged: they are no failures. Tables that were
    released since are not named, because the next run attempts them.

    Args:
        context: of the task.
        settings: of the source.
        results: of the stages of the run, in order; of each table the last result counts.
    """
    lag = report_lag(settings)
    note = run_note(results, lag)
    _LOG.info("%s", note)
    context["ti"].xcom_push(key=NOTE, value=note)
    if lag and any("stop_seqno" in result for result in results):  # after a delta, not after an initial load
        notify(context, settings.name, lambda notifier: _tell_lag(notifier, settings, lag))
    stopped = {str(table) for table in quarantines_of(settings).all()}
    tables = {table["table"]: table for result in results for table in result.get("tables", [])}
    for name, one in tables.items():
        if one.get("note"):
            _LOG.info("%s is left behind: %s", name, one["note"])
    released = {name for name, one in tables.items() if one.get("status") == "quarantined"} - stopped
    errors = {name: error for result in results for name, error in errors_of(result).items()}
    named = sorted(errors.keys() - released)
    return failure({name: errors[name] for name in named}, len(tables)), named


def find_short_runway(
    context: Context, settings: SourceSettings, interval: Mapping[str, Any]
) -> tuple[LoaderError | None, bool]:
    """Return the error if the server will soon purge log of these intervals, and whether it was notified.

    If the log is archived, the runway is not checked.
    """
    from loader.source.retention import Runway, RunwayTooShort, check_runway

    short: RunwayTooShort | None = None
    notified: list[bool] = []
    if not settings.transport.archive:
        try:
            check_runway(Runway.model_validate(interval["runway"]), settings.min_runway_hours)
        except RunwayTooShort as error:
            short = error
        notify(context, settings.name, lambda notifier: notified.append(notifier.runway(short, interval["start"])))
    return short, any(notified)


def mark_notified_tables(context: Context, settings: SourceSettings, tables: Sequence[str]) -> None:
    """Let the failure of the task cause no notification, if the quarantines of all these tables were notified."""
    notify(context, settings.name, lambda notifier: mark_notified(context, notifier.has_notified(tables)))


def mark_notified(context: Context, is_notified: bool) -> None:
    """Let the failure of the task cause no notification, if its cause was notified by another event."""
    if is_notified:
        context["ti"].xcom_push(key=NOTIFIED, value=True)


def _tell_lag(notifier: SourceNotifier, settings: SourceSettings, lag: SourceLag) -> None:
    from loader.airflow.connections import secret
    from loader.airflow.sources import dag_settings_of
    from loader.pipeline import unapplied_seconds

    if limit := dag_settings_of(settings.name).max_lag_minutes:
        with secret(settings.server.password):
            notifier.lag(lag, unapplied_seconds(settings, lag), limit)
