"""Where the intervals of a backlog stop: a rule of the log and of the limits alone.

An interval takes whole transactions for as long as it stays within every limit. The one that would exceed a limit
begins the next interval, so that a transaction beyond the limits is an interval of its own.
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
    """The stops of the intervals that a backlog becomes, in order; the last one is its own stop.

    The log is walked once, in bounded memory, and not at all where the bytes say that all of it is one interval.

    Raises:
        LoaderError: what transport and walk raise, once the stops before are given; also where the end of the
            backlog is no transaction boundary.
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
    """The position so many bytes from the start of the backlog; behind a whole file it is the end of that file."""
    for file, begin, end in segments:
        if place <= end - begin:
            return Position.at(file, begin + place)
        place -= end - begin
    raise ValueError("a place behind the end of the backlog")


def _transactions(transport: Transport, file: str, begin: int, end: int, *, last: bool) -> Iterator[tuple[Ints, Ints]]:
    """Ends and commit times (microseconds) of the transactions of a segment, a block at a time."""
    # Not at the top: the codec loads its kernels on import, for which a plan without a walk has no use.
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
        # A crash of MariaDB leaves its file so: the extraction looks whether anything is missing.
        if last or not log.form.mariadb:
            refuse_rest(walk, log, end)


@dataclass
class _Cutter:
    """Cuts a stream of transactions into intervals. Places are bytes of log from the start of the backlog.

    Attributes:
        total: bytes of the backlog.
        start: where the interval being filled starts.
        end: where its last transaction so far ends; taken: how many it has; since: when its first one was committed.
    """

    limits: IntervalLimits
    total: int
    start: int = 0
    end: int = 0
    taken: int = 0
    since: int = 0

    @property
    def rest_fits(self) -> bool:
        """Whether all that is left is one interval, whatever transactions it has."""
        counted = self.limits.transactions or self.limits.seconds
        return not counted and self.total - self.start <= (self.limits.bytes or _ENDLESS)

    def cuts(self, ends: Ints, committed: Ints) -> Iterator[int]:
        """The stops among these transactions, which follow on those of the last call."""
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
        """Number of the first transaction from `at` on that exceeds a limit; the number of all where none does."""
        upto = len(ends)
        if self.limits.bytes:
            upto = int(np.searchsorted(ends, self.start + self.limits.bytes, "right"))
        if self.limits.transactions:
            upto = min(upto, at + self.limits.transactions - self.taken)
        if self.limits.seconds:
            late = np.flatnonzero(committed[at:upto] > self.since + self.limits.seconds * _SECOND)
            upto = at + int(late[0]) if len(late) else upto
        return max(upto, at)
