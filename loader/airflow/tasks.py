"""Tasks that need no Spark."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task

from loader.airflow.reports.errors import QUARANTINED, RUNWAY, reported
from loader.airflow.reports.failure_notifier import TOLD
from loader.airflow.reports.notifications import SourceNotifier, notify
from loader.airflow.run_conf import refuse_unknown_conf
from loader.airflow.versions import AirflowSkipException
from loader.errors import LoaderError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.pipeline import SourceLag
    from loader.settings import SourceSettings
    from loader.source.retention import Runway

_LOG = logging.getLogger(__name__)
_LEVELS = {"ok": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@task(multiple_outputs=False)
def plan_interval(source: str, until: str | None = None) -> dict[str, Any]:
    """Choose the intervals of the log for this run, and store them under the name of the run.

    A cleared run gets the same intervals again. Unfinished intervals come before new ones. The result has `runway`: how
    long the server keeps the log that was not staged before. It is also logged. The result has `listed`: the captured
    tables that are not in the warehouse.

    Args:
        source: its name.
        until: the place where the intervals end at the latest, see `loader run --until`; None: the end of the log.
    """
    from loader.airflow.connections import secret
    from loader.airflow.sources import settings_of
    from loader.pipeline import find_log_position, list_tables, source_runway
    from loader.pipeline import plan_interval as choose

    context = get_current_context()
    run = context["dag_run"]
    with reported(context):
        refuse_unknown_conf(context)
        settings = settings_of(source)
        with secret(settings.server.password):
            listed = list_tables(settings)
            stop = find_log_position(settings, until) if until else None
            chosen = choose(settings, run=f"{run.dag_id}/{run.run_id}", until=stop)
            runway = source_runway(settings)
    if chosen is None:
        raise AirflowSkipException("the log has nothing after the initial load")
    _LOG.info("%s interval %s to %s", "new" if chosen.new else "earlier", chosen.start, chosen.stop)
    _LOG.info("%s", runway)
    tables = listed.model_dump(mode="json") if listed else None
    return {**chosen.model_dump(mode="json"), "runway": runway.model_dump(mode="json"), "listed": tables}


@task
def check_tables(source: str, results: list[dict[str, Any]]) -> None:
    """Fail the run, after all its work, if tables could not be loaded or are quarantined, with the fix of each.

    Before that, it writes the note of the run (XCom `note`), sends the gauges of the source to Airflow's metrics, and
    logs the tables that are left behind on purpose, such as paused tables: they are no failures.
    It also fails if an interval after others could not be staged, unless a retry can help, because the next run is one.
    Tables that were released since are not named, because the next run attempts them.

    Args:
        source: its name.
        results: of the tasks before.
    """
    from loader.airflow.reports.failures import errors_of, failure
    from loader.airflow.reports.metrics import measured
    from loader.airflow.reports.run_note import NOTE, run_note
    from loader.airflow.sources import settings_of
    from loader.pipeline import quarantines_of
    from loader.spark.job import rebuild

    context = get_current_context()
    with reported(context, QUARANTINED):
        settings = settings_of(source)
        lag = measured(settings)
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
        failed = failure({name: errors[name] for name in named}, len(tables))
        unstaged = [rebuild(result["failed"]) for result in results if result.get("failed")]
        if failed:
            notify(context, settings.name, lambda notifier: _note_told(context, notifier.has_told(named)))
            raise failed
        if unstaged and not unstaged[0].retryable:
            raise unstaged[0]
    _LOG.info("all %d tables are up to date, or the next run continues them", len(tables))


@task
def check_runway(source: str, interval: dict[str, Any] | None) -> None:
    """Fail if the server will soon purge log that this run reads, and the log is not archived. This is only an alarm.

    The tasks that read the log continue. A DAG with pause_on_failure does not pause for this failure.
    """
    from loader.airflow.sources import settings_of
    from loader.source.retention import Runway

    if interval is None:
        raise AirflowSkipException("no interval was chosen")
    context = get_current_context()
    with reported(context, RUNWAY):
        found = Runway.model_validate(interval["runway"])
        settings = settings_of(source)
        if not settings.transport.archive:
            _check_runway(context, settings, found, interval["start"])


def _check_runway(context: Context, settings: SourceSettings, found: Runway, position: str) -> None:
    from loader.source.retention import RunwayTooShort, check_runway

    short: RunwayTooShort | None = None
    try:
        check_runway(found, settings.min_runway_hours)
    except RunwayTooShort as error:
        short = error
    notify(context, settings.name, lambda notifier: _note_told(context, notifier.runway(short, position)))
    if short:
        raise short


def _tell_lag(notifier: SourceNotifier, settings: SourceSettings, lag: SourceLag) -> None:
    from loader.airflow.connections import secret
    from loader.airflow.sources import dag_settings
    from loader.pipeline import unapplied_seconds

    if limit := dag_settings(settings.name).max_lag_minutes:
        with secret(settings.server.password):
            notifier.lag(lag, unapplied_seconds(settings, lag), limit)


def _note_told(context: Context, is_told: bool) -> None:
    """Note whether an event told the cause of the failure that follows. Then the failure is not told as well."""
    if is_told:
        context["ti"].xcom_push(key=TOLD, value=True)


@task(multiple_outputs=False)
def purge(source: str) -> list[dict[str, Any]]:
    """Remove staged files that are no longer needed, or move them to the archive, as configured."""
    from loader.airflow.sources import settings_of
    from loader.pipeline import kept_files
    from loader.pipeline import purge as remove

    context = get_current_context()
    with reported(context):
        refuse_unknown_conf(context)
        settings = settings_of(source)
        removed = remove(settings, settings.retention.keep)
        kept = kept_files(settings)
    for removal in removed:
        _LOG.info("%s %s: %d files of %d bytes", removal.what, removal.start, removal.files, removal.bytes)
    for one in kept:
        _LOG.info(
            "%s is postponed: %d files of %d bytes in %d applied intervals stay for it",
            *(one.table, one.files, one.bytes, one.intervals),
        )
    return [removal.model_dump(mode="json") for removal in removed]


@task(multiple_outputs=False)
def check_source(source: str, conn_id: str = "spark_default") -> list[dict[str, Any]]:
    """Make the checks of `loader doctor`, log each finding, and fail if one is an error."""
    from loader.airflow.connections import secrets_of, spark_settings
    from loader.airflow.sources import settings_of
    from loader.doctor.page import of_source

    context = get_current_context()
    with reported(context):
        refuse_unknown_conf(context)
        settings = settings_of(source)
        with secrets_of(settings):
            spark = spark_settings(settings.spark, conn_id)
            findings = of_source(settings.model_copy(update={"spark": spark}))
        for finding in findings:
            _LOG.log(_LEVELS[finding.severity], "%s: %s", finding.name, finding.what)
        if errors := [finding for finding in findings if finding.severity == "error"]:
            raise LoaderError(
                f"{len(errors)} of {len(findings)} checks found errors",
                why="\n".join(f"{one.name}: {one.what}\n  what to do: {one.cure}" for one in errors),
                hint="fix each cause, then clear this task",
                source=settings.name,
            )
    return [finding.model_dump(mode="json") for finding in findings]
