"""Submitting Spark jobs from the command, with their progress on a terminal and quiet in a pipe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from loader.cli.output import Output
from loader.errors import LoaderError
from loader.settings import SourceSettings
from loader.spark.job import rebuild
from loader.spark.submit import run

if TYPE_CHECKING:
    from loader.pipeline import Job

_SUBMIT = logging.getLogger("loader.spark.submit")


_EVERY_SECONDS = 10


class _Told(logging.Handler):
    """Passes each line that a job logged of itself to somebody."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.DEBUG)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        _, mark, text = record.getMessage().partition("INFO loader.")
        if mark:
            self._tell(text.partition(": ")[2])


class _NowAndThen:
    """Prints a line to stderr, at most every ten seconds: where nobody watches a bar, a log has to show progress."""

    def __init__(self, title: str, clock: Callable[[], float]) -> None:
        self._title, self._clock = title, clock
        self._last = clock()

    def __call__(self, text: str) -> None:
        now = self._clock()
        if now - self._last >= _EVERY_SECONDS:
            self._last = now
            typer.echo(f"{self._title}: {text}", err=True)


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
        with _telling(_NowAndThen(title, time.monotonic)):
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
        task = progress.add_task(escape(title), total=None, note="")
        with _telling(lambda text: progress.update(task, note=escape(text[:80]))):
            yield


@contextmanager
def _telling(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, somebody gets the lines that jobs log of themselves."""
    handler, previous = _Told(tell), _SUBMIT.level
    _SUBMIT.addHandler(handler)
    _SUBMIT.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        _SUBMIT.setLevel(previous)
        _SUBMIT.removeHandler(handler)
