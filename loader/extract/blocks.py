"""Reading a range of a log file: walked block by block, and read again where a transaction was longer than a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.compressed import expand
from loader.binlog.format import HEAD_BYTES, LogFormat, read_format
from loader.binlog.index import LogIndex, Walk
from loader.binlog.registry import TableRegistry
from loader.errors import BinlogFormatError
from loader.extract.span import LogRange
from loader.transport.base import LogFile
from loader.transport.reading import outer_event, read_exactly

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_BLOCK = 4 * 1024 * 1024


@dataclass(frozen=True)
class Window:
    """What one block of log brought to an end.

    A transaction of very many row events comes in windows of its own, before the one that it closes in.

    Attributes:
        index: the transactions that closed in it; the first may have begun in blocks before.
        block: the block's bytes; they are overwritten by the next one.
        base: offset in the file of the block's first byte.
        more: it only adds row events; everything else of its transactions is in a window that follows.
        inner: the block is not of the file but of the expanded bytes of an event.
    """

    index: LogIndex
    block: Bytes
    base: int
    more: bool = False
    inner: bool = False

    def holding(self, log: LogFile, rows: Ints, form: LogFormat, file: str) -> Iterator[tuple[Bytes, int, Ints]]:
        """The row events `rows` in runs, each with bytes that hold it and the place of the first of them."""
        if not len(rows):
            return
        if self.inner:
            yield self.block, self.base, rows
            return
        outer = np.where(rows[:, w.R_INNER] == 1, rows[:, w.R_EVENT], -1)
        for run in np.split(rows, np.flatnonzero(np.diff(outer)) + 1):
            if run[0, w.R_INNER]:
                yield from _expanded(log, int(run[0, w.R_EVENT]), run, form, file)
            else:
                yield from self._plain(log, run, file)

    def _plain(self, log: LogFile, rows: Ints, file: str) -> Iterator[tuple[Bytes, int, Ints]]:
        before = int(np.searchsorted(rows[:, w.R_OFFSET], self.base))
        for run in _runs(rows[:before]):
            begin, end = int(run[0, w.R_OFFSET]), int(run[-1, w.R_OFFSET] + run[-1, w.R_SIZE])
            yield read_exactly(log, begin, end - begin, file), begin, run
        if before < len(rows):
            yield self.block, self.base, rows[before:]

    def statement(self, log: LogFile, statement: Ints, file: str) -> bytes:
        """The event of a statement (fields walk.S_*)."""
        offset, size, body = (int(statement[n]) for n in (w.S_OFFSET, w.S_SIZE, w.S_BODY))
        if body >= 0:
            return self.index.bodies[body]
        if offset >= self.base:
            return self.block[offset - self.base : offset - self.base + size].tobytes()
        return read_exactly(log, offset, size, file).tobytes()


def format_of(log: LogFile, file: str) -> LogFormat:
    """The format of an open log file."""
    log.seek(0)
    return read_format(log.read(HEAD_BYTES) or b"", file)


def counted(span: LogRange, part_bytes: int) -> tuple[int, int]:
    """The bytes whose events this range accounts for."""
    return span.first_part * part_bytes, span.end_part * part_bytes


def windows(
    log: LogFile, span: LogRange, form: LogFormat, registry: TableRegistry, part_bytes: int
) -> Iterator[Window]:
    """The windows of a range, one after the other, in memory that grows with its longest row only.

    Raises:
        BinlogFormatError: damage, or ends that are no transaction boundaries.
    """
    walk = Walk(registry, span.file, span.read_from, form.checksum, counted(span, part_bytes))
    for block, base in _blocks(log, span, form, walk):
        index = walk.finish() if walk.position == span.read_to else walk.take()
        first = 0
        for number in index.long:
            if number > first:
                yield Window(index.only(first, number), block, base, more=True)
            yield from _long(log, span, form, registry, index.transactions[number : number + 1])
            first = number
        rest = index.only(first, len(index.transactions)).rows if first else index.rows
        yield Window(replace(index, rows=rest), block, base)


def _long(
    log: LogFile, span: LogRange, form: LogFormat, registry: TableRegistry, transaction: Ints
) -> Iterator[Window]:
    """The row events of a transaction of which no index was kept, in as many windows as it takes."""
    bounds = {"read_from": int(transaction[0, w.T_START]), "read_to": int(transaction[0, w.T_END])}
    walk = Walk(registry, span.file, bounds["read_from"], form.checksum, (0, 0), drained=True)
    for block, base, inner in _steps(log, span.model_copy(update=bounds), form, walk):
        rows = walk.drain()
        rows[:, w.R_TRANSACTION] = 0
        index = LogIndex(rows, transaction, np.zeros((0, w.WIDTHS[2]), np.int64), np.zeros(257, np.int64), [])
        yield Window(index, block, base, more=True, inner=inner)


def _blocks(log: LogFile, span: LogRange, form: LogFormat, walk: Walk) -> Iterator[tuple[Bytes, int]]:
    """Each block and its base, once it is walked."""
    buffer = np.empty(_BLOCK, np.uint8)
    kept = 0
    while walk.position < span.read_to:
        buffer = _with_room(buffer, kept)
        kept += _read_more(log, span, walk.position, buffer, kept)
        base = walk.position
        walk.feed(buffer[:kept])
        while walk.outer:
            header, pieces = outer_event(log, walk.outer.offset, form, span.file)
            walk.expand(expand(walk.outer.kind, pieces, header))
            if walk.position - base < kept:
                walk.feed(buffer[walk.position - base : kept])
        used = min(walk.position - base, kept)
        yield buffer[:used], base
        kept -= used
        buffer[:kept] = buffer[used : used + kept].copy()


def _steps(log: LogFile, span: LogRange, form: LogFormat, walk: Walk) -> Iterator[tuple[Bytes, int, bool]]:
    """Each block and its base once it is walked, and each piece of an expanded event (the flag) in its turn."""
    buffer = np.empty(_BLOCK, np.uint8)
    kept = 0
    while walk.position < span.read_to:
        buffer = _with_room(buffer, kept)
        kept += _read_more(log, span, walk.position, buffer, kept)
        base = walk.position
        used = walk.feed(buffer[:kept])
        yield buffer[:used], base, False
        kept -= used
        buffer[:kept] = buffer[used : used + kept].copy()
        if walk.outer:
            header, pieces = outer_event(log, walk.outer.offset, form, span.file)
            for piece, at in walk.expanding(expand(walk.outer.kind, pieces, header)):
                yield piece, at, True
            kept = 0


def _with_room(buffer: Bytes, kept: int) -> Bytes:
    """The buffer, or one that holds all of the event that fills it."""
    if kept < len(buffer):
        return buffer
    size = int.from_bytes(buffer[9:13].tobytes(), "little")
    return np.concatenate([buffer, np.empty(max(size - kept, _BLOCK), np.uint8)])


def _read_more(log: LogFile, span: LogRange, position: int, buffer: Bytes, kept: int) -> int:
    """Read into the buffer behind the `kept` bytes from `position` on; how many bytes."""
    size = min(span.read_to - position - kept, len(buffer) - kept)
    log.seek(position + kept)
    got = log.readinto(buffer.data[kept : kept + size]) if size else 0
    if not got:
        raise BinlogFormatError(
            "the interval does not end where an event does" if kept else "the log ends before the interval",
            hint="positions must be transaction boundaries",
            file=span.file,
            position=position,
        )
    return got


def _runs(rows: Ints) -> Iterator[Ints]:
    """Runs of row events that span about a block of log, or one larger event."""
    at = 0
    while at < len(rows):
        limit = rows[at, w.R_OFFSET] + _BLOCK
        end = max(at + 1, int(np.searchsorted(rows[:, w.R_OFFSET] + rows[:, w.R_SIZE], limit, "right")))
        yield rows[at:end]
        at = end


def _expanded(log: LogFile, offset: int, rows: Ints, form: LogFormat, file: str) -> Iterator[tuple[Bytes, int, Ints]]:
    """Row events of a compressed event, with expanded bytes that hold them."""
    header, pieces = outer_event(log, offset, form, file)
    ends = rows[:, w.R_OFFSET] + rows[:, w.R_SIZE]
    rest, base, at = b"", 0, 0
    for piece in expand(header[4], pieces, header):
        data = rest + piece
        whole = int(np.searchsorted(ends, base + len(data), "right"))
        if whole > at:
            yield np.frombuffer(bytearray(data), np.uint8), base, rows[at:whole]
        at = whole
        if at == len(rows):
            return
        used = min(len(data), int(rows[at, w.R_OFFSET]) - base)
        rest, base = data[used:], base + used
