"""The windows of a log range: the transactions that each block completes, with the bytes of their row events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.index import LogIndex, Walk, rows_index
from loader.binlog.table_registry import TableRegistry
from loader.errors import BinlogFormatError
from loader.extract.log_ranges import LogRange
from loader.reader.files.log_walk import BLOCK, LogBytes, steps, walked
from loader.transport.segments import lags

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """The transactions that one block of log completes.

    A transaction with very many row events gets windows of its own, before the window in which it closes.

    Attributes:
        index: the completed transactions; the first may have begun in earlier blocks.
        block: the bytes of the block. The next block overwrites them.
        base: offset of the block's first byte in the file.
        more: the window only adds row events; the rest of its transactions follows in a later window.
        inner: the block holds expanded bytes of an event instead of bytes of the file.
    """

    index: LogIndex
    block: Bytes
    base: int
    more: bool = False
    inner: bool = False

    def holding(self, log: LogBytes, rows: Ints) -> Iterator[tuple[Bytes, int, Ints]]:
        """Yield the row events `rows` in runs, each with the bytes that hold it and the offset of the first byte."""
        if not len(rows):
            return
        if self.inner:
            yield self.block, self.base, rows
            return
        outer = np.where(rows[:, w.R_INNER] == 1, rows[:, w.R_EVENT], -1)
        for run in np.split(rows, np.flatnonzero(np.diff(outer)) + 1):
            if run[0, w.R_INNER]:
                yield from _expanded(log, int(run[0, w.R_EVENT]), run)
            else:
                yield from self._plain(log, run)

    def _plain(self, log: LogBytes, rows: Ints) -> Iterator[tuple[Bytes, int, Ints]]:
        before = int(np.searchsorted(rows[:, w.R_OFFSET], self.base))
        for run in _runs(rows[:before]):
            begin, end = int(run[0, w.R_OFFSET]), int(run[-1, w.R_OFFSET] + run[-1, w.R_SIZE])
            yield log.block(begin, end - begin), begin, run
        if before < len(rows):
            yield self.block, self.base, rows[before:]

    def statement(self, log: LogBytes, statement: Ints) -> bytes:
        """Return the event of a statement (fields walk.S_*)."""
        offset, size, body = (int(statement[n]) for n in (w.S_OFFSET, w.S_SIZE, w.S_BODY))
        if body >= 0:
            return self.index.bodies[body]
        if offset >= self.base:
            return self.block[offset - self.base : offset - self.base + size].tobytes()
        return log.block(offset, size).tobytes()


def counted_bytes(span: LogRange, part_bytes: int) -> tuple[int, int]:
    """Return the byte range whose events the range accounts for."""
    return span.first_part * part_bytes, span.end_part * part_bytes


def ignore_unfinished(log: LogBytes, *, newest: bool) -> Callable[[int, int], None] | None:
    """Return the `cut_off` of a search. A crashed MariaDB leaves files that end inside a transaction."""
    return (lambda *_: None) if log.form.mariadb and not newest else None


def read_windows(
    log: LogBytes,
    span: LogRange,
    registry: TableRegistry,
    part_bytes: int,
    cut_off: Callable[[int, int], None] | None = None,
) -> Iterator[Window]:
    """Yield the windows of a range in order. Memory grows with the longest row only.

    Args:
        log: the bytes of the log file.
        span: the range.
        registry: of the tables.
        part_bytes: bytes of log per part.
        cut_off: if given, the range ends at the end of its file and may end inside a transaction, which is not yielded.
            It is called with the offset where that transaction begins, and the offset of the incomplete event (the end
            of the file if every event is whole).

    Raises:
        BinlogFormatError: damage, or an end that is no transaction boundary.
        LogLags: the file ends before the range does.
    """
    walk = Walk(registry, span.file, span.read_from, log.form.checksum, counted_bytes(span, part_bytes))
    for block, base in walked(log, walk, span.read_to):
        index = walk.finish() if walk.position == span.read_to and not cut_off else walk.take()
        first = 0
        for number in index.long:
            if number > first:
                yield Window(index.between(first, number), block, base, more=True)
            yield from _long(log, span, registry, index.transactions[number : number + 1])
            first = number
        rest = index.between(first, len(index.transactions)).rows if first else index.rows
        yield Window(replace(index, rows=rest), block, base)
    if cut_off:
        if walk.open_start < span.read_to:
            cut_off(walk.open_start, walk.position)
    elif walk.position < span.read_to:
        if not log.fill(np.empty(1, np.uint8), span.read_to - 1):
            raise lags(span.file, walk.position, span.read_to)
        raise BinlogFormatError(
            "the interval does not end at the end of an event",
            why="the log ends before the interval does, or the end is not a transaction boundary",
            file=span.file,
            position=walk.position,
        )


def _long(log: LogBytes, span: LogRange, registry: TableRegistry, transaction: Ints) -> Iterator[Window]:
    """Yield the row events of a transaction without an index, in as many windows as needed."""
    start, end = int(transaction[0, w.T_START]), int(transaction[0, w.T_END])
    walk = Walk(registry, span.file, start, log.form.checksum, (0, 0), keep=True)
    for block, base, inner in steps(log, walk, end):
        rows = walk.drain()
        rows[:, w.R_TRANSACTION] = 0
        yield Window(rows_index(rows, transaction), block, base, more=True, inner=inner)


def tables_in_transaction(
    log: LogBytes, span: LogRange, registry: TableRegistry, window: Window, number: int
) -> tuple[str, ...]:
    """Return the captured tables that have rows in a transaction, sorted. A transaction without an index is walked."""
    if number in window.index.long:
        transaction = window.index.transactions[number : number + 1]
        parts = [np.unique(one.index.rows[:, w.R_TABLE]) for one in _long(log, span, registry, transaction)]
    else:
        rows = window.index.rows
        parts = [np.unique(rows[rows[:, w.R_TRANSACTION] == number, w.R_TABLE])]
    numbers = {one for part in parts for one in part.tolist()}
    return tuple(sorted(map(str, registry.table_names(numbers))))


def _runs(rows: Ints) -> Iterator[Ints]:
    """Yield runs of row events that span about one block of log, or one larger event."""
    at = 0
    while at < len(rows):
        limit = rows[at, w.R_OFFSET] + BLOCK
        end = max(at + 1, int(np.searchsorted(rows[:, w.R_OFFSET] + rows[:, w.R_SIZE], limit, "right")))
        yield rows[at:end]
        at = end


def _expanded(log: LogBytes, offset: int, rows: Ints) -> Iterator[tuple[Bytes, int, Ints]]:
    """Yield row events of a compressed event or of fragments, with the expanded bytes that hold them."""
    ends = rows[:, w.R_OFFSET] + rows[:, w.R_SIZE]
    rest, base, at = b"", 0, 0
    for piece in log.expanded(offset).pieces:
        data = rest + piece
        whole = int(np.searchsorted(ends, base + len(data), "right"))
        if whole > at:
            yield np.frombuffer(bytearray(data), np.uint8), base, rows[at:whole]
        at = whole
        if at == len(rows):
            return
        used = min(len(data), int(rows[at, w.R_OFFSET]) - base)
        rest, base = data[used:], base + used
