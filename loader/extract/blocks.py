"""Reading a range of a log file: walked block by block, and read again where a transaction was longer than a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.format import HEAD_BYTES, LogFormat, read_format
from loader.binlog.index import LogIndex, Walk
from loader.binlog.registry import TableRegistry
from loader.errors import BinlogFormatError
from loader.extract.span import LogRange
from loader.transport.base import LogFile

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_BLOCK = 4 * 1024 * 1024


@dataclass(frozen=True)
class Window:
    """What one block of log brought to an end.

    Attributes:
        index: the transactions that closed in it; the first may have begun in blocks before.
        block: the block's bytes; they are overwritten by the next one.
        base: offset in the file of the block's first byte.
    """

    index: LogIndex
    block: Bytes
    base: int

    def holding(self, log: LogFile, rows: Ints, file: str) -> Iterator[tuple[Bytes, int, Ints]]:
        """The row events `rows` in runs, each with bytes that hold it and the offset of the first of them."""
        before = int(np.searchsorted(rows[:, w.R_OFFSET], self.base))
        for run in _runs(rows[:before]):
            begin, end = int(run[0, w.R_OFFSET]), int(run[-1, w.R_OFFSET] + run[-1, w.R_SIZE])
            yield read_exactly(log, begin, end - begin, file), begin, run
        if before < len(rows):
            yield self.block, self.base, rows[before:]

    def event(self, log: LogFile, offset: int, size: int, file: str) -> Bytes:
        """The bytes of one event."""
        if offset >= self.base:
            return self.block[offset - self.base : offset - self.base + size]
        return read_exactly(log, offset, size, file)


def format_of(log: LogFile, file: str) -> LogFormat:
    """The format of an open log file."""
    log.seek(0)
    return read_format(log.read(HEAD_BYTES) or b"", file)


def counted(span: LogRange, part_bytes: int) -> tuple[int, int]:
    """The bytes whose events this range accounts for."""
    return span.first_part * part_bytes, span.end_part * part_bytes


def index_range(log: LogFile, span: LogRange, form: LogFormat, registry: TableRegistry, part_bytes: int) -> LogIndex:
    """The index of a whole range.

    Raises:
        BinlogFormatError: damage, or ends that are no transaction boundaries.
    """
    walk = Walk(registry, span.file, span.read_from, form.checksum, counted(span, part_bytes))
    for _ in _blocks(log, span, walk):
        pass
    return walk.finish()


def windows(
    log: LogFile, span: LogRange, form: LogFormat, registry: TableRegistry, part_bytes: int
) -> Iterator[Window]:
    """The same in pieces as they come, so that memory does not grow with the range but with its longest transaction.

    Raises:
        BinlogFormatError: damage, or ends that are no transaction boundaries.
    """
    walk = Walk(registry, span.file, span.read_from, form.checksum, counted(span, part_bytes))
    for block, base in _blocks(log, span, walk):
        yield Window(walk.finish() if walk.position == span.read_to else walk.take(), block, base)


def _blocks(log: LogFile, span: LogRange, walk: Walk) -> Iterator[tuple[Bytes, int]]:
    """Each block and its base, once it is walked."""
    buffer = np.empty(_BLOCK, np.uint8)
    kept = 0
    while walk.position < span.read_to:
        left = span.read_to - walk.position - kept
        if kept == len(buffer):
            buffer = np.concatenate([buffer, np.empty(len(buffer), np.uint8)])
        log.seek(walk.position + kept)
        got = log.readinto(buffer.data[kept : kept + min(left, len(buffer) - kept)]) if left else 0
        if not got:
            raise BinlogFormatError(
                "the interval does not end where an event does" if kept else "the log ends before the interval",
                hint="positions must be transaction boundaries",
                file=span.file,
                position=walk.position,
            )
        base = walk.position
        used = walk.feed(buffer[: kept + got])
        yield buffer[:used], base
        kept = kept + got - used
        buffer[:kept] = buffer[used : used + kept].copy()


def _runs(rows: Ints) -> Iterator[Ints]:
    """Runs of row events that span about a block of log, or one larger event."""
    at = 0
    while at < len(rows):
        limit = rows[at, w.R_OFFSET] + _BLOCK
        end = max(at + 1, int(np.searchsorted(rows[:, w.R_OFFSET] + rows[:, w.R_SIZE], limit, "right")))
        yield rows[at:end]
        at = end


def read_exactly(log: LogFile, offset: int, size: int, file: str) -> Bytes:
    """So many bytes of the file from an offset.

    Raises:
        BinlogFormatError: there are fewer.
    """
    log.seek(offset)
    block = np.empty(size, np.uint8)
    at = 0
    while at < size:
        got = log.readinto(block.data[at:])
        if not got:
            raise BinlogFormatError("the log became shorter while it was read", file=file, position=offset + at)
        at += got
    return block
