"""Walks a log file block by block; the extraction and the library share it."""

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
from loader.transport.event_read import outer_event, read_exactly

Block = NDArray[np.uint8]

BLOCK = 8 * 1024 * 1024
"""Bytes of log in a block; a longer event makes its block longer."""

FIRST = 4
"""Offset of the first event in a file."""


class LogBytes:
    """An open log file, read at any offset. Not for several threads."""

    def __init__(self, name: str, log: LogFile, form: LogFormat) -> None:
        self.name = name
        self.form = form
        self._log = log

    def fill(self, block: Block, offset: int) -> int:
        """Read into the block; return the number of bytes. Only the end of the file makes it less than the block."""
        view, at = block.data, 0
        self._log.seek(offset)
        while at < len(view):
            got = self._log.readinto(view[at:])
            if not got:
                break
            at += got
        return at

    def block(self, offset: int, size: int) -> Block:
        """Return these bytes.

        Raises:
            BinlogFormatError: the file became shorter.
        """
        return read_exactly(self._log, offset, size, self.name)

    def is_whole(self, outer: OuterEvent, stop: int) -> bool:
        """Return whether an outer event, or all fragments of a row event, end at the byte `stop` or before.

        Raises:
            BinlogFormatError, UnsupportedError: the fragments are not those of one row event.
        """
        if outer.kind == PARTIAL_ROW_DATA:
            return are_whole(self._log, outer.offset, stop, self.form, self.name)
        return outer.end <= stop

    def expanded(self, offset: int) -> ExpandedEvent:
        """Return the contents of the outer event, or of the fragments, at that offset.

        Raises:
            BinlogFormatError, UnsupportedError: see `expand` and `reader.files.fragments`; also for a wrong checksum.
                The checksum of a compressed event is checked after all its pieces are read.
        """
        header, pieces = outer_event(self._log, offset, self.form, self.name)
        if header[4] == PARTIAL_ROW_DATA:
            return gathered(self._log, offset, self.form, self.name)
        size = int.from_bytes(header[9:13], "little")
        return ExpandedEvent(expand(header[4], pieces, header), offset + size, 1, HEADER, size)


def log_bytes(log: LogFile, name: str) -> LogBytes:
    """Read the format of an open file.

    Raises:
        BinlogFormatError, UnsupportedError: see read_format.
    """
    log.seek(0)
    return LogBytes(name, log, read_format(log.read(HEAD_BYTES) or b"", name))


def walked(log: LogBytes, walk: Walk, stop: int) -> Iterator[tuple[Block, int]]:
    """Walk up to the byte `stop`, or to an event that does not end before it; yield each walked block and its offset.

    The next block overwrites the bytes of the one before.
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
    """Walk as `walked` does; also yield pieces of expanded events: bytes, offset in the expanded bytes, and True."""
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
    """The bytes from a walk's position on. Bytes that the walk could not use are kept for the next block.

    Attributes:
        ended: the last read returned nothing.
    """

    def __init__(self, log: LogBytes, stop: int) -> None:
        self._log = log
        self._stop = stop
        self._buffer: Block = np.empty(BLOCK, np.uint8)
        self._kept = 0
        self.ended = False

    def block(self, position: int) -> Block:
        """Return the kept bytes, whose offset is `position`, and as many more as fit."""
        if self._kept == len(self._buffer):
            # A single event fills the buffer; its header has its size.
            size = int.from_bytes(self._buffer[9:13].tobytes(), "little")
            more = np.empty(min(max(size, 2 * self._kept), self._stop - position) - self._kept, np.uint8)
            self._buffer = np.concatenate([self._buffer, more])
        room = min(self._stop - position - self._kept, len(self._buffer) - self._kept)
        got = self._log.fill(self._buffer[self._kept : self._kept + room], position + self._kept)
        self.ended = not got
        self._kept += got
        return self._buffer[: self._kept]

    def drop(self, used: int) -> None:
        """Drop the first `used` bytes and keep the rest."""
        rest = self._buffer[used : self._kept].copy()
        self._kept = len(rest)
        self._buffer[: self._kept] = rest
