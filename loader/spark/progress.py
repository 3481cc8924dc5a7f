"""Progress of Spark jobs, as log lines that people can read and that commands turn into progress bars."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock

_LOG = logging.getLogger(__name__)
LOGGER = __name__

_LINE = re.compile(
    r"(?P<name>.+): (?P<done>\d+) of (?P<total>\d+) (?P<unit>\w+), (?P<rows>\d+) rows, (?P<bytes>\d+) bytes", re.DOTALL
)


@dataclass(frozen=True)
class Progress:
    """How far a job is with one piece of its work.

    Attributes:
        name: of the piece: a table as `schema.table`, or what a job counts as a whole.
        done: units that are done.
        total: units of the whole piece; 0 if the job does not know it.
        unit: `chunks` or `files` of a table; `tables` or `intervals` of a whole job.
        rows: rows or staged records that are done.
        bytes: bytes that are done, of staged files or of log.
    """

    name: str
    done: int
    total: int
    unit: str
    rows: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        return f"{self.name}: {self.done} of {self.total} {self.unit}, {self.rows} rows, {self.bytes} bytes"

    @property
    def of_table(self) -> bool:
        """Whether the piece is a table, and not the whole job."""
        return self.unit in {"chunks", "files"}

    @property
    def finished(self) -> bool:
        """Whether nothing of the piece is left."""
        return 0 < self.total <= self.done

    def report(self) -> None:
        """Log the progress."""
        _LOG.info("%s", self)


def parse_progress(line: str) -> Progress | None:
    """Return the progress that a log line reports, or None for any other line."""
    found = _LINE.fullmatch(line)
    if not found:
        return None
    done, total, rows, size = (int(found[name]) for name in ("done", "total", "rows", "bytes"))
    return Progress(found["name"], done, total, found["unit"], rows, size)


@dataclass
class Work:
    """Rows and bytes of a table that are done."""

    rows: int = 0
    bytes: int = 0


class TableCount:
    """Counts the tables of a job that are done, from several threads, and reports each."""

    def __init__(self, total: int) -> None:
        self._progress = Progress("all tables", 0, total, "tables")
        self._lock = Lock()
        self._progress.report()

    @contextmanager
    def working(self, name: str, files: int = 0) -> Iterator[Work]:
        """Report that the work on a table of so many staged files starts, then that it ended, and count the table.

        The block sets what is done. A table whose work fails is counted without rows.
        """
        Progress(name, 0, files, "files").report()
        work = Work()
        try:
            yield work
        finally:
            Progress(name, max(files, 1), max(files, 1), "files", work.rows, work.bytes).report()
            self.add(work.rows, work.bytes)

    def add(self, rows: int = 0, size: int = 0) -> None:
        """Count one more table, of so many rows and bytes."""
        with self._lock:
            before = self._progress
            self._progress = replace(before, done=before.done + 1, rows=before.rows + rows, bytes=before.bytes + size)
            self._progress.report()
