"""The stops of the intervals of a backlog. They depend only on the log and on the limits.

An interval takes whole transactions while it stays within every limit. The transaction that would exceed a limit starts
the next interval. A transaction larger than the limits gets its own interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loader.model.position import Interval, Position
from loader.settings import IntervalLimits
from loader.transport.base import Transport

Ints = NDArray[np.int64]

_ENDLESS = 1 << 62
_SECOND = 1_000_000


def find_stops(transport: Transport, backlog: Interval, limits: IntervalLimits) -> Iterator[Position]:
    """Yield the stops of the intervals of a backlog, in order. The last one is the stop of the backlog.

    The log is walked once, in bounded memory. If the bytes show that everything is one interval, it is not walked at
    all.

    Raises:
        LoaderError: from transport and walk, after the earlier stops; also if the end of the backlog is no transaction
            boundary.
    """
    segments = transport.segments(backlog)
    cutter = _Cutter(limits, sum(end - begin for _, begin, end in segments))
    passed = 0
    for file, begin, end in segments:
        if cutter.rest_fits:
            break
        for ends, committed in _transactions(transport, file, begin, end, last=file == backlog.stop.file):
            for cut in cutter.cuts(ends - begin + passed, committed):
                stop = _position(segments, cut)
                if stop != backlog.stop:
                    yield stop
            if cutter.rest_fits:
                break
        passed += end - begin
    yield backlog.stop


def _position(segments: Sequence[tuple[str, int, int]], place: int) -> Position:
    """Return the position at a byte offset from the start of the backlog; after a whole file, the end of that file."""
    for file, begin, end in segments:
        if place <= end - begin:
            return Position.at(file, begin + place)
        place -= end - begin
    raise ValueError("a place behind the end of the backlog")


def _transactions(transport: Transport, file: str, begin: int, end: int, *, last: bool) -> Iterator[tuple[Ints, Ints]]:
    """Yield ends and commit times (microseconds) of the transactions of a segment, block by block."""
    # Not at the top: the codec loads its kernels on import, and a plan without a walk does not need them.
    from loader.binlog import walk as w
    from loader.binlog.index import Walk
    from loader.binlog.table_registry import TableRegistry
    from loader.reader.files.log_walk import log_bytes, walked
    from loader.reader.files.window import refuse_rest

    with transport.open(file, begin, end) as opened:
        log = log_bytes(opened, file)
        registry = TableRegistry(lambda _: False, mariadb=log.form.mariadb)
        walk = Walk(registry, file, begin, log.form.checksum, (0, 0))
        for _ in walked(log, walk, end):
            found = walk.take().transactions
            yield found[:, w.T_END], found[:, w.T_COMMITTED]
        # A crashed MariaDB leaves unfinished files. The extraction checks that nothing committed is missing.
        if last or not log.form.mariadb:
            refuse_rest(walk, log, end)


@dataclass
class _Cutter:
    """Cuts a stream of transactions into intervals. Offsets are bytes of log from the start of the backlog.

    Attributes:
        total: bytes of the backlog.
        start: start of the current interval.
        end: end of its last transaction so far.
        taken: number of its transactions.
        since: commit time of its first transaction.
    """

    limits: IntervalLimits
    total: int
    start: int = 0
    end: int = 0
    taken: int = 0
    since: int = 0

    @property
    def rest_fits(self) -> bool:
        """Whether the rest of the backlog is one interval, whatever its transactions are."""
        counted = self.limits.transactions or self.limits.seconds
        return not counted and self.total - self.start <= (self.limits.bytes or _ENDLESS)

    def cuts(self, ends: Ints, committed: Ints) -> Iterator[int]:
        """Yield the stops among these transactions, which follow those of the previous call."""
        at = 0
        while at < len(ends):
            if not self.taken:
                self.since = int(committed[at])
            upto = min(len(ends), self._fitting(ends, committed, at))
            if upto == at and not self.taken:
                upto = at + 1
            elif upto == len(ends):
                self.taken, self.end = self.taken + upto - at, int(ends[-1])
                return
            self.start = self.end = int(ends[upto - 1]) if upto > at else self.end
            self.taken, at = 0, upto
            yield self.start

    def _fitting(self, ends: Ints, committed: Ints, at: int) -> int:
        """Return the index of the first transaction from `at` on that exceeds a limit, or their number."""
        upto = len(ends)
        if self.limits.bytes:
            upto = int(np.searchsorted(ends, self.start + self.limits.bytes, "right"))
        if self.limits.transactions:
            upto = min(upto, at + self.limits.transactions - self.taken)
        if self.limits.seconds:
            late = np.flatnonzero(committed[at:upto] > self.since + self.limits.seconds * _SECOND)
            upto = at + int(late[0]) if len(late) else upto
        return max(upto, at)
