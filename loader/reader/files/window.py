"""Reading a log file in windows: runs of whole transactions, walked and indexed, in bounded memory.

A window is what a block of log brings to an end. A transaction longer than a block makes its window as long, of which
only the index is in memory: 64 bytes a row event. A log that is damaged is read up to the last transaction before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from loader.binlog import walk as w
from loader.binlog.index import LogIndex, Walk
from loader.binlog.table_registry import TableRegistry
from loader.errors import BinlogFormatError, LoaderError
from loader.reader.files.log_files import Named
from loader.reader.files.log_walk import FIRST, LogBytes, log_bytes, walked
from loader.transport.base import Opens

_ENDLESS = 1 << 62


@contextmanager
def opened(files: Opens, file: Named, start: int = FIRST) -> Iterator[LogBytes]:
    """The file, whose format and bytes from `start` on can be read.

    Raises:
        BinlogFormatError, UnsupportedError: see read_format.
        GapError, SourceUnavailable: see Transport.open.
    """
    with files.open(file.name, start, file.size) as log:
        yield log_bytes(log, file.name)


@dataclass(frozen=True)
class Window:
    """The transactions and other events in the bytes [start, end) of a file."""

    index: LogIndex
    start: int
    end: int

    @property
    def is_cut(self) -> bool:
        """Whether it has the beginning of a transaction only, before damage."""
        outcomes = self.index.transactions[:, w.T_OUTCOME]
        return len(outcomes) == 1 and int(outcomes[0]) == w.CUT_OFF


def windows(
    log: LogBytes, registry: TableRegistry, start: int, stop: int, *, closed: bool, cut: bool = False
) -> Iterator[Window]:
    """Return the windows of the bytes from `start`, a boundary, to `stop`, one after the other.

    Args:
        log: the file.
        registry: of its table maps.
        start: a boundary.
        stop: the byte behind the last one.
        closed: the bytes must end where a transaction does. Otherwise the rest is not there yet, and is left.
        cut: give the whole events of a damaged transaction too, as a window with the outcome walk.CUT_OFF.

    Raises:
        BinlogFormatError, UnsupportedError: what the walk refuses, after windows of everything before it.
    """
    walk = Walk(registry, log.name, start, log.form.checksum, (0, _ENDLESS), keep=True)
    try:
        for _ in walked(log, walk, stop):
            if window := _taken(walk, start):
                yield window
                start = window.end
        if closed:
            refuse_rest(walk, log, stop)
    except LoaderError as error:
        yield from _before(error, log, registry, start, cut=cut)
        raise


def _taken(walk: Walk, start: int) -> Window | None:
    """What is whole from `start` on."""
    index = walk.take()
    ends = index.transactions[:, w.T_END]
    end = walk.position
    if walk.inside_transaction:
        end = int(ends[-1]) if len(ends) else start
    return Window(index, start, end) if end > start else None


def _before(error: LoaderError, log: LogBytes, registry: TableRegistry, start: int, *, cut: bool) -> Iterator[Window]:
    """The whole transactions before the place of an error, and with `cut` the events of the one that it is in."""
    walk = Walk(registry, log.name, start, log.form.checksum, (0, _ENDLESS), keep=True)
    for _ in walked(log, walk, int(error.where.get("position", start))):
        pass
    if window := _taken(walk, start):
        yield window
    if cut and walk.inside_transaction:
        yield Window(walk.take_open(), walk.open_start, walk.position)


def refuse_rest(walk: Walk, log: LogBytes, stop: int) -> None:
    """Raise BinlogFormatError unless what was walked ends at the byte `stop` and where a transaction does."""
    if walk.position < stop:
        raise BinlogFormatError(
            "the log ends inside an event",
            why=f"{stop - walk.position} bytes are left that are no whole event",
            hint="the file is damaged or was copied while it was written; copy it again, or read it as a live one",
            file=log.name,
            position=walk.position,
        )
    walk.finish()  # raises when a transaction is open
