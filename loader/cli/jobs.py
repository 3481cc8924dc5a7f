"""Spark jobs that commands submit, and the errors that their results carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from loader.cli.output import Output
from loader.cli.progress import show_progress
from loader.errors import LoaderError
from loader.settings import SourceSettings
from loader.spark.job import rebuild
from loader.spark.submit import run

if TYPE_CHECKING:
    from loader.pipeline import Job


def submit(job: Job, settings: SourceSettings, output: Output) -> dict[str, Any]:
    """Run a job, show its progress on stderr, and return its result.

    Raises:
        LoaderError: what the job raised.
    """
    with show_progress(f"{job.name} {settings.name}", output.errors, as_json=output.as_json):
        return run(job.file, job.spec, settings.spark, short=job.kind.short)


def error_of(error: dict[str, Any] | None) -> LoaderError | None:
    """Return the error that a result carries, or None if it carries none."""
    return rebuild(error) if error else None


def fail_on_tables(result: dict[str, Any], output: Output | None = None) -> None:
    """Print the errors of a result's tables, unless the output is JSON.

    Raises:
        typer.Exit: tables failed; with the worst of their exit codes.
    """
    errors = [rebuild(table["error"]) for table in result["tables"] if table["error"]]
    if not errors:
        return
    if output and not output.as_json:
        for error in errors:
            output.error(error)
    raise typer.Exit(max(error.exit_code for error in errors))
