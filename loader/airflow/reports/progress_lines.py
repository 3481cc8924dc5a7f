"""Progress in the log of a task: a line per minute for each table, with its rate and the time that is left.

Jobs log their progress every few seconds, for commands that show it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from loader.spark.progress import LOGGER, parse_progress
from loader.spark.progress_meter import Clock, Meter

_SECONDS = 60


class ProgressLines(logging.Filter):
    """Keeps a line of progress per minute of each table, from the second minute on, and the last line of these tables.

    A table that takes less than a minute has no lines. As a filter it changes the records of progress.
    """

    def __init__(self, clock: Clock = monotonic) -> None:
        super().__init__()
        self._clock, self._meter = clock, Meter(clock)
        self._last: dict[str, float] = {}
        self._shown: set[str] = set()

    def line(self, text: str) -> str | None:
        """Return the line to log for a line of progress, or None for none."""
        progress = parse_progress(text)
        if progress is None:
            return None
        now, described = self._clock(), self._meter.text(progress)
        if progress.finished and progress.name in self._shown:
            self._shown.remove(progress.name)
        elif progress.finished or now - self._last.setdefault(progress.name, now) < _SECONDS:
            return None
        else:
            self._last[progress.name] = now
            self._shown.add(progress.name)
        return f"{progress.name}: {described}"

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a record of progress into the line to log, or drop it."""
        line = self.line(record.getMessage())
        record.msg, record.args = line, ()
        return line is not None


@contextmanager
def fewer_progress_lines() -> Iterator[None]:
    """Log fewer lines of the progress of a job that runs in this process, within the block."""
    lines, logger = ProgressLines(), logging.getLogger(LOGGER)
    logger.addFilter(lines)
    try:
        yield
    finally:
        logger.removeFilter(lines)
