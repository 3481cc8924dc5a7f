"""Progress of a Spark job: bars on a terminal, a line every ten seconds in a pipe, or events in JSON.

All are read from the job's log.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from loader.spark.progress import LOGGER, Progress, parse_progress
from loader.spark.progress_meter import Clock, Meter

_SUBMIT = logging.getLogger("loader.spark.submit")
_PIPE_SECONDS = 10
_EVENT_SECONDS = 2
_BAR_WIDTH = 24
_NOTE_LENGTH = 80


class Display(Protocol):
    """Where the progress of a job is shown."""

    def note(self, text: str) -> None:
        """Show a log line of the job."""

    def update(self, progress: Progress) -> None:
        """Show how far the job is with one piece of its work."""


class PipeDisplay:
    """Prints a line to stderr, at most every ten seconds."""

    def __init__(self, title: str, clock: Clock) -> None:
        self._title, self._clock, self._meter = title, clock, Meter(clock)
        self._last = clock()

    def note(self, text: str) -> None:
        """See Display."""
        now = self._clock()
        if now - self._last >= _PIPE_SECONDS:
            self._last = now
            typer.echo(f"{self._title}: {text}", err=True)

    def update(self, progress: Progress) -> None:
        """See Display."""
        self.note(f"{progress.name}: {self._meter.text(progress)}")


class EventDisplay:
    """Prints progress to stderr as lines of JSON, for each table and the whole job at most every two seconds."""

    def __init__(self, title: str, clock: Clock) -> None:
        self._title, self._clock, self._meter = title, clock, Meter(clock)
        self._last: dict[str, float] = {}

    def note(self, text: str) -> None:
        """See Display."""

    def update(self, progress: Progress) -> None:
        """See Display. The last event of a piece is always printed."""
        now = self._clock()
        if now - self._last.get(progress.name, -_EVENT_SECONDS) < _EVENT_SECONDS and not progress.finished:
            return
        self._last[progress.name] = now
        rate, left = self._meter.rates(progress)
        counts = {name: getattr(progress, name) for name in ("done", "total", "unit", "rows", "bytes")}
        table = progress.name if progress.of_table else None
        event = {"event": "progress", "job": self._title, "table": table, **counts}
        typer.echo(json.dumps(event | {"rows_per_second": rate, "seconds_left": left}), err=True)


class BarDisplay:
    """Shows a bar for the job, and one for each table that the job works on."""

    def __init__(self, title: str, bars: Bars, clock: Clock) -> None:
        self._bars, self._meter = bars, Meter(clock)
        self._job = bars.add_task(title, total=None, text="")
        self._whole, self._note = "", ""
        self._pieces: dict[str, TaskID] = {}

    def note(self, text: str) -> None:
        """See Display."""
        self._note = text[:_NOTE_LENGTH]
        self._show_job()

    def update(self, progress: Progress) -> None:
        """See Display. The bar of a finished table is removed."""
        text = self._meter.text(progress)
        if not progress.of_table:
            self._whole = text
            self._bars.update(self._job, completed=progress.done, total=progress.total or None)
            self._show_job()
            return
        if progress.name not in self._pieces:
            self._pieces[progress.name] = self._bars.add_task(f"  {progress.name}", text=text)
        self._bars.update(self._pieces[progress.name], completed=progress.done, total=progress.total or None, text=text)
        if progress.finished:
            self._bars.remove_task(self._pieces.pop(progress.name))

    def _show_job(self) -> None:
        self._bars.update(self._job, text="; ".join(filter(None, (self._whole, self._note))))


class _JobLog(logging.Handler):
    """Passes the lines that a job logs to a display."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.DEBUG)
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        _, mark, text = record.getMessage().partition("INFO loader.")
        logger, _, line = text.partition(": ")
        if not mark:
            return
        progress = parse_progress(line) if f"loader.{logger}" == LOGGER else None
        if progress:
            self._display.update(progress)
        else:
            self._display.note(line)


@contextmanager
def show_progress(title: str, console: Console, *, as_json: bool = False) -> Iterator[None]:
    """Show the progress of the job that runs within the block.

    Args:
        title: of the job.
        as_json: print events instead.
        console: of stderr. Whatever else is printed on it appears above the bars, and does not tear them.
    """
    if as_json:
        with _following(EventDisplay(title, time.monotonic)):
            yield
        return
    if not console.is_terminal:
        with _following(PipeDisplay(title, time.monotonic)):
            yield
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_BAR_WIDTH),
        TimeElapsedColumn(),
        TextColumn("{task.fields[text]}", style="dim", markup=False),
    )
    with Bars(*columns, console=console, transient=True) as bars, _following(BarDisplay(title, bars, time.monotonic)):
        yield


@contextmanager
def _following(display: Display) -> Iterator[None]:
    handler, previous = _JobLog(display), _SUBMIT.level
    _SUBMIT.addHandler(handler)
    _SUBMIT.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        _SUBMIT.setLevel(previous)
        _SUBMIT.removeHandler(handler)
