"""Reading a log file in windows: runs of whole transactions, walked and indexed, in bounded memory.

A window is what a block of log brings to an end. A transaction longer than a block makes its window as long, of which
only the index is in memory: 40 bytes a row event. A log that is damaged is read up to the last transaction before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.compressed import expand
from loader.binlog.format import HEAD_BYTES, LogFormat, read_format
from loader.binlog.index import LogIndex, Outer, Walk
from loader.binlog.registry import TableRegistry
from loader.errors import BinlogFormatError, LoaderError
from loader.reader.files import LogFiles, Named
from loader.transport.base import LogFile
from loader.transport.reading import outer_event, read_exactly

Block = NDArray[np.uint8]

BLOCK = 8 * 1024 * 1024
"""Bytes of log that are looked at together, but for a longer event."""

FIRST = 4
"""Where the first event of a file stands."""

_ENDLESS = 1 << 62


class LogBytes:
    """An open log file, read at any offset. Not for several threads."""

    def __init__(self, name: str, log: LogFile, form: LogFormat) -> None:
        self.name = name
        self.form = form
        self._log = log

    def fill(self, block: Block, offset: int) -> int:
        """Read into the block; the number of bytes, less than its length only at the end of the file."""
        view, at = block.data, 0
        self._log.seek(offset)
        while at < len(view):
            got = self._log.readinto(view[at:])
            if not got:
                break
            at += got
        return at

    def block(self, offset: int, size: int) -> Block:
        """These bytes. Raises BinlogFormatError when the file became shorter."""
        return read_exactly(self._log, offset, size, self.name)

    def body(self, outer: Outer) -> Iterator[bytes]:
        """What is between the header and the checksum of an event that holds others, in pieces.

        Raises:
            BinlogFormatError: the checksum, verified at the end, is wrong.
        """
        return outer_event(self._log, outer.offset, self.form, self.name)[1]


@contextmanager
def opened(files: LogFiles, file: Named, start: int = FIRST) -> Iterator[LogBytes]:
    """The file, whose format and bytes from `start` on can be read.

    Raises:
        BinlogFormatError, UnsupportedError: see read_format.
        GapError, SourceUnavailable: see Transport.open.
    """
    with files.open(file.name, start, file.size) as log:
        log.seek(0)
        form = read_format(log.read(HEAD_BYTES) or b"", file.name)
        yield LogBytes(file.name, log, form)


@dataclass(frozen=True)
class Window:
    """The transactions and other events in the bytes [start, end) of a file."""

    index: LogIndex
    start: int
    end: int


def windows(log: LogBytes, registry: TableRegistry, start: int, stop: int, *, closed: bool) -> Iterator[Window]:
    """The windows of the bytes from `start`, a boundary, to `stop`, one after the other.

    With `closed` the bytes must end where a transaction does. Without, the rest is not there yet, and is left.

    Raises:
        BinlogFormatError, UnsupportedError: what the walk refuses, after a window of all that stands before it.
    """
    walk = Walk(registry, log.name, start, log.form.checksum, (0, _ENDLESS))
    buffer = np.empty(BLOCK, np.uint8)
    while walk.position < stop:
        try:
            before = walk.position
            got = _advance(walk, log, buffer, stop)
        except LoaderError as error:
            if window := _before(error, log, registry, start):
                yield window
            raise
        if window := _taken(walk, start):
            yield window
            start = window.end
        if walk.position == before:
            if got < len(buffer):
                break
            buffer = np.empty(2 * len(buffer), np.uint8)
    if closed:
        _refuse_rest(walk, log, stop)


def _advance(walk: Walk, log: LogBytes, buffer: Block, stop: int) -> int:
    """Walk a buffer of bytes, and what is compressed in them; the number of bytes read."""
    base = walk.position
    got = log.fill(buffer[: min(len(buffer), stop - base)], base)
    walk.feed(buffer[:got])
    while walk.outer and walk.outer.end <= stop:
        walk.expand(expand(walk.outer.kind, log.body(walk.outer), walk.outer.header))
        if walk.position < base + got:
            walk.feed(buffer[walk.position - base : got])
    return got


def _taken(walk: Walk, start: int) -> Window | None:
    """What is whole from `start` on."""
    index = walk.take()
    ends = index.transactions[:, w.T_END]
    end = walk.position
    if walk.inside_transaction:
        end = int(ends[-1]) if len(ends) else start
    return Window(index, start, end) if end > start else None


def _before(error: LoaderError, log: LogBytes, registry: TableRegistry, start: int) -> Window | None:
    """What is whole before the place of an error."""
    walk = Walk(registry, log.name, start, log.form.checksum, (0, _ENDLESS))
    damaged = int(error.where.get("position", start))
    buffer = np.empty(BLOCK, np.uint8)
    while walk.position < damaged:
        before = walk.position
        _advance(walk, log, buffer, damaged)
        if walk.position == before:
            buffer = np.empty(2 * len(buffer), np.uint8)
    return _taken(walk, start)


def _refuse_rest(walk: Walk, log: LogBytes, stop: int) -> None:
    if walk.position < stop:
        raise BinlogFormatError(
            "the log ends inside an event",
            why=f"{stop - walk.position} bytes are left that are no whole event",
            hint="the file is damaged or was copied while it was written; copy it again, or read it as a live one",
            file=log.name,
            position=walk.position,
        )
    walk.finish()  # raises when a transaction is open
