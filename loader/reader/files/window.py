"""Reads a log file in windows: runs of whole transactions with their index, in bounded memory.

A window has the transactions that end in one block of log. A transaction longer than a block makes its window longer;
only the index of it is in memory: 72 bytes per row event. A damaged log is read up to the damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from loader.binlog import walk as w
from loader.binlog.index import LogIndex, Walk
from loader.binlog.table_registry import TableRegistry
from loader.errors import BinlogFormatError, LoaderError
from loader.reader.files.log_files import ListedFile
from loader.reader.files.log_walk import FIRST, LogBytes, log_bytes, walked
from loader.transport.base import Opens

_ENDLESS = 1 << 62


@contextmanager
def opened(files: Opens, file: ListedFile, start: int = FIRST) -> Iterator[LogBytes]:
    """Open a file; its format and its bytes from `start` on can be read.

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
        """Whether it only has the start of a transaction, which is damaged further on."""
        outcomes = self.index.transactions[:, w.T_OUTCOME]
        return len(outcomes) == 1 and int(outcomes[0]) == w.CUT_OFF


def windows(
    log: LogBytes, registry: TableRegistry, start: int, stop: int, *, closed: bool, cut: bool = False
) -> Iterator[Window]:
    """Return the windows of the bytes from `start`, a boundary, to `stop`, one after the other.

    Args:
        log: the file.
        registry: its table maps.
        start: offset of a boundary.
        stop: end offset.
        closed: the bytes must end at the end of a transaction. Otherwise the server still writes the rest of it, which
            is left for later.
        cut: also return the whole events of a damaged transaction, in a window with the outcome walk.CUT_OFF.

    Raises:
        BinlogFormatError, UnsupportedError: from the walk, after the windows of all bytes before the error.
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
    """Return the whole transactions and other events from `start` on; None if there are none."""
    index = walk.take()
    ends = index.transactions[:, w.T_END]
    end = walk.position
    if walk.inside_transaction:
        end = int(ends[-1]) if len(ends) else start
    return Window(index, start, end) if end > start else None


def _before(error: LoaderError, log: LogBytes, registry: TableRegistry, start: int, *, cut: bool) -> Iterator[Window]:
    """Yield the whole transactions before an error, and with `cut` the whole events of the damaged one."""
    walk = Walk(registry, log.name, start, log.form.checksum, (0, _ENDLESS), keep=True)
    for _ in walked(log, walk, int(error.where.get("position", start))):
        pass
    if window := _taken(walk, start):
        yield window
    if cut and walk.inside_transaction:
        yield Window(walk.take_open(), walk.open_start, walk.position)


def refuse_rest(walk: Walk, log: LogBytes, stop: int) -> None:
    """Check that the walked bytes end at `stop` and at the end of a transaction.

    Raises:
        BinlogFormatError: they do not.
    """
    if walk.position < stop:
        raise BinlogFormatError(
            "the log ends inside an event",
            why=f"the last {stop - walk.position} bytes are not a whole event",
            hint="the file is damaged, or was copied while the server wrote it; copy it again",
            file=log.name,
            position=walk.position,
        )
    walk.finish()  # raises when a transaction is open
