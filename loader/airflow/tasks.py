"""Tasks that need no Spark."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import get_current_context

from loader.airflow.linked_task import linked_task
from loader.airflow.reports.errors import QUARANTINED, RUNWAY, reported
from loader.airflow.run_conf import refuse_backfill, refuse_unknown_conf
from loader.airflow.versions import AirflowSkipException
from loader.errors import LoaderError

_LOG = logging.getLogger(__name__)
_LEVELS = {"ok": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@linked_task(multiple_outputs=False)
def plan_interval(source: str, until: str | None = None) -> dict[str, Any]:
    """Choose the intervals of the log for this run, and store them under the name of the run.

    A cleared run gets the same intervals again. Unfinished intervals come before new ones. The result has `runway`: how
    long the server keeps the log that was not staged before. It is also logged. The result has `listed`: the captured
    tables that are not in the warehouse.

    Args:
        source: its name.
        until: the place where the intervals end at the latest, see `loader run --until`; None: the end of the log.
    """
    from loader.airflow.sources import settings_of
    from loader.airflow.stages.run_plan import plan_run

    context = get_current_context()
    run = context["dag_run"]
    with reported(context):
        refuse_unknown_conf(context)
        settings = settings_of(source)
        refuse_backfill(context, settings)
        chosen = plan_run(settings, f"{run.dag_id}/{run.run_id}", (until or "").strip())
    if chosen is None:
        raise AirflowSkipException("the log has nothing after the initial load")
    return chosen


@linked_task
def check_tables(source: str, results: list[dict[str, Any] | None]) -> None:
    """Fail the run, after all its work, if tables could not be loaded or are quarantined, with the fix of each.

    Before that, it writes the note of the run (XCom `note`), sends the gauges of the source to Airflow's metrics, and
    logs the tables that are left behind on purpose, such as paused tables: they are no failures.
    It also fails if an interval after others could not be staged, unless a retry can help, because the next run is one.
    Tables that were released since are not named, because the next run attempts them.

    Args:
        source: its name.
        results: of the tasks before; None of a task that a person marked as success.
    """
    from loader.airflow.reports.run_report import mark_notified_tables, report_run
    from loader.airflow.sources import settings_of
    from loader.spark.job import rebuild

    context = get_current_context()
    known = [result for result in results if result is not None]
    with reported(context, QUARANTINED):
        settings = settings_of(source)
        failed, named = report_run(context, settings, known)
        unstaged = [rebuild(result["failed"]) for result in known if result.get("failed")]
        if failed:
            mark_notified_tables(context, settings, named)
            raise failed
        if unstaged and not unstaged[0].retryable:
            raise unstaged[0]
    if len(known) < len(results):
        _LOG.warning("a task of this run has no result: somebody marked it as success; another run must do its work")
        return
    tables = {table["table"] for result in known for table in result.get("tables", [])}
    _LOG.info("all %d tables are up to date, or the next run continues them", len(tables))


@linked_task
def check_runway(source: str, interval: dict[str, Any] | None) -> None:
    """Fail if the server will soon purge log that this run reads, and the log is not archived. This is only an alarm.

    The tasks that read the log continue. A DAG with pause_on_failure does not pause for this failure.
    """
    from loader.airflow.reports.run_report import find_short_runway, mark_notified
    from loader.airflow.sources import settings_of

    if interval is None:
        raise AirflowSkipException("no interval was chosen")
    context = get_current_context()
    with reported(context, RUNWAY):
        error, is_notified = find_short_runway(context, settings_of(source), interval)
        if error:
            mark_notified(context, is_notified)
            raise error


@linked_task(multiple_outputs=False)
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


@linked_task(multiple_outputs=False)
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
