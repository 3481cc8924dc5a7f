"""Submitting Spark jobs from the command, with their progress on a terminal and quiet in a pipe."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from loader.cli.output import Output
from loader.errors import LoaderError
from loader.job import rebuild
from loader.settings import SourceSettings
from loader.submit import run

if TYPE_CHECKING:
    from loader.pipeline import Job

_SUBMIT = logging.getLogger("loader.submit")


class _LastLine(logging.Handler):
    """Shows the newest line that a job logged of itself beside its bar."""

    def __init__(self, progress: Progress, task: Any) -> None:
        super().__init__(logging.DEBUG)
        self._progress, self._task = progress, task

    def emit(self, record: logging.LogRecord) -> None:
        _, mark, text = record.getMessage().partition("INFO loader.")
        if mark:
            self._progress.update(self._task, note=escape(text.partition(": ")[2][:80]))


def submit(job: Job, settings: SourceSettings, console: Console) -> dict[str, Any]:
    """Run the job and return its result.

    Raises:
        LoaderError: what the job raised.
    """
    with _bar(f"{job.name} {settings.name}", console):
        return run(job.file, job.spec, settings.spark, short=job.short)


def error_of(told: dict[str, Any] | None) -> LoaderError | None:
    """The error that a result tells of, if it does."""
    return rebuild(told) if told else None


def fail_on_tables(result: dict[str, Any], output: Output | None = None) -> None:
    """Print the errors of a result's tables, unless it is printed as JSON, then exit with the worst of their codes."""
    errors = [rebuild(table["error"]) for table in result["tables"] if table["error"]]
    if not errors:
        return
    if output and not output.as_json:
        for error in errors:
            output.error(error)
    raise typer.Exit(max(error.exit_code for error in errors))


@contextmanager
def _bar(title: str, console: Console) -> Iterator[None]:
    if not console.is_terminal:
        yield
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        handler = _LastLine(progress, progress.add_task(escape(title), total=None, note=""))
        _SUBMIT.addHandler(handler)
        previous = _SUBMIT.level
        _SUBMIT.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            _SUBMIT.setLevel(previous)
            _SUBMIT.removeHandler(handler)
