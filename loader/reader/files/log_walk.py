"""Walking a log file a block at a time: what the extraction and the view of events have in common."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from loader.binlog.constants import HEADER, PARTIAL_ROW_DATA
from loader.binlog.events.compressed_events import expand
from loader.binlog.format import HEAD_BYTES, LogFormat, read_format
from loader.binlog.index import ExpandedEvent, OuterEvent, Walk
from loader.reader.files.fragments import are_whole, gathered
from loader.transport.base import LogFile
from loader.transport.pieces import outer_event, read_exactly

Block = NDArray[np.uint8]

BLOCK = 8 * 1024 * 1024
"""Bytes of log that are looked at together, but for a longer event."""

FIRST = 4
"""Where the first event of a file stands."""


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

    def is_whole(self, outer: OuterEvent, stop: int) -> bool:
        """Whether an event that holds others ends by the byte `stop`, and every fragment if it is the first of some.

        Raises:
            BinlogFormatError, UnsupportedError: fragments that are not one row event's.
        """
        if outer.kind == PARTIAL_ROW_DATA:
            return are_whole(self._log, outer.offset, stop, self.form, self.name)
        return outer.end <= stop

    def expanded(self, offset: int) -> ExpandedEvent:
        """What is in the event there, or in the fragments that begin there.

        Raises:
            BinlogFormatError, UnsupportedError: see `expand` and `reader.files.fragments`. Also for a wrong checksum.
                That of a compressed event is checked when all its pieces were read.
        """
        header, pieces = outer_event(self._log, offset, self.form, self.name)
        if header[4] == PARTIAL_ROW_DATA:
            return gathered(self._log, offset, self.form, self.name)
        size = int.from_bytes(header[9:13], "little")
        return ExpandedEvent(expand(header[4], pieces, header), offset + size, 1, HEADER, size)


def log_bytes(log: LogFile, name: str) -> LogBytes:
    """An open file, its format read.

    Raises:
        BinlogFormatError, UnsupportedError: see read_format.
    """
    log.seek(0)
    return LogBytes(name, log, read_format(log.read(HEAD_BYTES) or b"", name))


def walked(log: LogBytes, walk: Walk, stop: int) -> Iterator[tuple[Block, int]]:
    """Walk on up to the byte `stop`, or to an event that is cut before; each block and its base, once it is walked.

    The next block overwrites it.
    """
    ahead = _Ahead(log, stop)
    while walk.position < stop:
        base = walk.position
        block = ahead.block(base)
        walk.feed(block)
        while walk.outer and log.is_whole(walk.outer, stop):
            walk.expand(log.expanded(walk.outer.offset))
            if walk.position - base < len(block):
                walk.feed(block[walk.position - base :])
        used = min(walk.position - base, len(block))
        if used:
            yield block[:used], base
        if walk.outer or (not used and ahead.ended):
            return
        ahead.drop(used)


def steps(log: LogBytes, walk: Walk, stop: int) -> Iterator[tuple[Block, int, bool]]:
    """The same, with each piece of an expanded event (the flag) in its turn, its base being in the expanded bytes."""
    ahead = _Ahead(log, stop)
    while walk.position < stop:
        base = walk.position
        block = ahead.block(base)
        used = walk.feed(block)
        if used:
            yield block[:used], base, False
        if walk.outer and log.is_whole(walk.outer, stop):
            for piece, at in walk.expand_steps(log.expanded(walk.outer.offset)):
                yield piece, at, True
            used = len(block)
        elif walk.outer or (not used and ahead.ended):
            return
        ahead.drop(used)


class _Ahead:
    """The bytes from a walk's position on. What the walk could not use is kept for the next time.

    Attributes:
        ended: the last look at the file brought nothing new.
    """

    def __init__(self, log: LogBytes, stop: int) -> None:
        self._log = log
        self._stop = stop
        self._buffer: Block = np.empty(BLOCK, np.uint8)
        self._kept = 0
        self.ended = False

    def block(self, position: int) -> Block:
        """What is kept, which stands at `position`, and as much more as there is room for."""
        if self._kept == len(self._buffer):
            # The buffer is full of a single event, whose header says how long it is.
            size = int.from_bytes(self._buffer[9:13].tobytes(), "little")
            more = np.empty(min(max(size, 2 * self._kept), self._stop - position) - self._kept, np.uint8)
            self._buffer = np.concatenate([self._buffer, more])
        room = min(self._stop - position - self._kept, len(self._buffer) - self._kept)
        got = self._log.fill(self._buffer[self._kept : self._kept + room], position + self._kept)
        self.ended = not got
        self._kept += got
        return self._buffer[: self._kept]

    def drop(self, used: int) -> None:
        """Keep what is behind the first `used` bytes."""
        rest = self._buffer[used : self._kept].copy()
        self._kept = len(rest)
        self._buffer[: self._kept] = rest
