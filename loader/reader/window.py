"""Reading a log file in windows: runs of whole transactions, walked and indexed, in bounded memory.

A window ends where a transaction does, so each has a walk of its own, and a log that is damaged is read up to the last
transaction before the damage. A transaction longer than a window makes its window as long, of which only the index is
in memory: 40 bytes a row event.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.format import HEAD_BYTES, LogFormat, read_format
from loader.binlog.index import LogIndex, Walk
from loader.binlog.registry import TableRegistry
from loader.errors import BinlogFormatError, LoaderError
from loader.reader.files import LogFiles, Named

Block = NDArray[np.uint8]

BLOCK = 8 * 1024 * 1024
"""Bytes of log that are looked at together, but for a longer event."""

FIRST = 4
"""Where the first event of a file stands."""

_ENDLESS = 1 << 62


class LogBytes:
    """An open log file, read at any offset by any thread."""

    def __init__(self, name: str, descriptor: int, form: LogFormat) -> None:
        self.name = name
        self.form = form
        self._descriptor = descriptor

    def fill(self, block: Block, offset: int) -> int:
        """Read into the block; the number of bytes, less than its length only at the end of the file."""
        view, at = block.data, 0
        while at < len(view):
            got = os.preadv(self._descriptor, [view[at:]], offset + at)
            if not got:
                break
            at += got
        return at

    def block(self, offset: int, size: int) -> Block:
        """These bytes. Raises BinlogFormatError when the file became shorter."""
        block = np.empty(size, np.uint8)
        if self.fill(block, offset) < size:
            raise BinlogFormatError("the log became shorter while it was read", file=self.name, position=offset)
        return block

    @contextmanager
    def kept(self) -> Iterator[LogBytes]:
        """The same file, still open when this one is closed."""
        descriptor = os.dup(self._descriptor)
        try:
            yield LogBytes(self.name, descriptor, self.form)
        finally:
            os.close(descriptor)


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
        yield LogBytes(file.name, log.fileno(), form)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Window:
    """The transactions and other events in the bytes [start, end) of a file."""

    index: LogIndex
    start: int
    end: int


class _WindowWalk(Walk):
    """A walk that can be left inside a transaction."""

    def closed(self) -> tuple[LogIndex, int]:
        """What is whole so far, and where it ends."""
        if not self.inside_transaction:
            return self.finish(), self.position
        opened_at = int(self._state[w.START])
        self._state[w.OPEN] = 0
        index = self.finish()
        self._state[w.OPEN] = 1
        count = len(index.transactions)
        rows = index.rows[index.rows[:, w.R_TRANSACTION] < count]
        statements = index.statements[index.statements[:, w.S_TRANSACTION] < count]
        return dataclasses.replace(index, rows=rows, statements=statements), opened_at

    def ended(self, start: int) -> bool:
        """Whether something since `start` is whole."""
        return not self.inside_transaction or int(self._state[w.START]) > start


def windows(
    log: LogBytes, registry: TableRegistry, start: int, stop: int, *, closed: bool, size: int = BLOCK
) -> Iterator[Window]:
    """The windows of the bytes from `start`, a boundary, to `stop`, each of at least `size` bytes but the last.

    With `closed` the bytes must end where a transaction does. Without, the rest is not there yet, and is left.

    Raises:
        BinlogFormatError, UnsupportedError: what the walk refuses, after a window of all that stands before it.
    """
    buffer = np.empty(BLOCK, np.uint8)
    exhausted = False
    while start < stop and not exhausted:
        walk = _WindowWalk(registry, log.name, start, log.form.checksum, (start, _ENDLESS))
        failure: LoaderError | None = None
        try:
            buffer, exhausted = _walk(walk, log, buffer, (start, stop), size)
        except LoaderError as error:
            failure = error
            walk = _before(error, log, registry, start)
        index, end = walk.closed()
        if end > start:
            yield Window(index, start, end)
        if failure:
            raise failure
        start = end
    if exhausted and closed:
        _refuse_rest(walk, log, stop)


def _walk(walk: _WindowWalk, log: LogBytes, buffer: Block, span: tuple[int, int], size: int) -> tuple[Block, bool]:
    """Feed blocks until the window is long enough and holds a whole transaction; whether the bytes came to an end."""
    start, stop = span
    while walk.position < stop:
        got = log.fill(buffer[: min(len(buffer), stop - walk.position)], walk.position)
        used = walk.feed(buffer[:got])
        if not used:
            if walk.position + got >= stop or got < len(buffer):
                return buffer, True
            buffer = np.empty(2 * len(buffer), np.uint8)
        if walk.position - start >= size and walk.ended(start):
            return buffer, walk.position >= stop
    return buffer, True


def _before(error: LoaderError, log: LogBytes, registry: TableRegistry, start: int) -> _WindowWalk:
    """A walk of the bytes before the place of an error."""
    walk = _WindowWalk(registry, log.name, start, log.form.checksum, (start, _ENDLESS))
    damaged = int(error.where.get("position", start))
    size = BLOCK
    while walk.position < damaged:
        if not walk.feed(log.block(walk.position, min(size, damaged - walk.position))):
            size *= 2
    return walk


def _refuse_rest(walk: _WindowWalk, log: LogBytes, stop: int) -> None:
    if walk.position < stop:
        raise BinlogFormatError(
            "the log ends inside an event",
            why=f"{stop - walk.position} bytes are left that are no whole event",
            hint="the file is damaged or was copied while it was written; copy it again, or read it as a live one",
            file=log.name,
            position=walk.position,
        )
    walk.finish()  # raises when a transaction is open
