"""What a run did to its tables: its note, its gauges, and the error of the tables that it leaves behind."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loader.airflow.reports.failures import errors_of, failure
from loader.airflow.reports.metrics import measured
from loader.airflow.reports.run_note import NOTE, run_note
from loader.errors import LoaderError
from loader.pipeline import quarantines_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)


def report_run(context: Context, settings: SourceSettings, results: Sequence[dict[str, Any]]) -> LoaderError | None:
    """Write the note of the run, send the gauges of the source, and return the error of its tables, if there is one.

    Tables that are left behind on purpose, such as paused tables, are logged: they are no failures. Tables that were
    released since are not named, because the next run attempts them.

    Args:
        context: of the task.
        settings: of the source.
        results: of the stages of the run, in order; of each table the last result counts.
    """
    note = run_note(results, measured(settings))
    _LOG.info("%s", note)
    context["ti"].xcom_push(key=NOTE, value=note)
    stopped = {str(table) for table in quarantines_of(settings).all()}
    tables = {table["table"]: table for result in results for table in result.get("tables", [])}
    for name, one in tables.items():
        if one.get("note"):
            _LOG.info("%s is left behind: %s", name, one["note"])
    released = {name for name, one in tables.items() if one.get("status") == "quarantined"} - stopped
    errors = {name: error for result in results for name, error in errors_of(result).items()}
    return failure({name: errors[name] for name in sorted(errors.keys() - released)}, len(tables))
