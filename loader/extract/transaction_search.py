"""Finding one transaction in the log, and what it contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from loader.binlog import walk as w
from loader.binlog.events.statement import LogStatement
from loader.binlog.table_registry import TableRegistry
from loader.extract.gtids.marks import GtidTally, gtid_at, gtid_set
from loader.extract.gtids.skipped_transactions import KEPT
from loader.extract.log_ranges import LogRange, whole_segment
from loader.extract.window_notes import Notes
from loader.extract.windows import Window, ignore_unfinished, read_windows
from loader.extract.xa_events import XaEvent
from loader.model.gtid import Gtid
from loader.model.position import Interval, Position
from loader.model.table import SchemaVersion, TableName
from loader.reader.files.log_files import lognum_of
from loader.reader.files.log_walk import LogBytes, log_bytes
from loader.transport.base import Segment, Transport

Sought = Callable[[LogBytes, Window], Iterator[int]]
"""Yields the numbers of the transactions of a window that are sought."""


@dataclass
class FoundTransaction:
    """A transaction of the log.

    Attributes:
        file, start, end: its bytes.
        gtid: None if it has none.
        is_done: it ends with a commit: it is neither prepared nor rolled back.
        events: the number of row events of each table.
        notes: its statements that are not transaction control, and its events of XA transactions.
    """

    file: str
    start: int
    end: int
    gtid: Gtid | None
    is_done: bool
    events: Counter[TableName] = field(default_factory=Counter)
    notes: list[LogStatement | XaEvent] = field(default_factory=list)

    @property
    def begin(self) -> Position:
        """The position of its first byte."""
        return Position.at(self.file, self.start)

    @property
    def stop(self) -> Position:
        """The position after its last byte."""
        return Position.at(self.file, self.end)


def at_position(position: Position) -> Sought:
    """Return what finds the transaction that contains a position, or begins at it."""

    def find(log: LogBytes, window: Window) -> Iterator[int]:
        transactions = window.index.transactions
        inside = (transactions[:, w.T_START] <= position.logpos) & (position.logpos < transactions[:, w.T_END])
        if log.name == position.file:
            yield from np.flatnonzero(inside).tolist()

    return find


def ending_at(position: Position) -> Sought:
    """Return what finds the transaction that ends at a position, which is that of its seqno."""

    def find(log: LogBytes, window: Window) -> Iterator[int]:
        if log.name == position.file:
            yield from np.flatnonzero(window.index.transactions[:, w.T_END] == position.logpos).tolist()

    return find


def with_gtid(gtid: Gtid) -> Sought:
    """Return what finds the transaction with a GTID."""

    def find(log: LogBytes, window: Window) -> Iterator[int]:
        starts = window.index.transactions[:, w.T_START].tolist()
        if not starts:
            return
        if not window.more:  # else its block may hold expanded bytes
            tally = GtidTally(log.form.mariadb)
            tally.add(log, window, starts[0], starts[-1] + 1)
            if gtid not in gtid_set(tally.parts(), mariadb=log.form.mariadb):
                return
        yield from (number for number, start in enumerate(starts) if gtid_at(log, start) == gtid)

    return find


def find_transaction(transport: Transport, log: Interval, shift: int, sought: Sought) -> FoundTransaction | None:
    """Return the first transaction of an interval of the log that is sought, or None.

    Args:
        transport: of the log.
        log: the interval to search. Both ends are transaction boundaries.
        shift: of the generation.
        sought: finds the transaction in a window.

    Raises:
        LoaderError: the log cannot be read up to the transaction.
    """
    for segment in transport.segments(log):
        if segment[1] < segment[2] and (found := _in_segment(transport, segment, log.stop, shift, sought)):
            return found
    return None


def _in_segment(
    transport: Transport, segment: Segment, stop: Position, shift: int, sought: Sought
) -> FoundTransaction | None:
    file, begin, end = segment
    span = whole_segment(file, lognum_of(file), begin, end, end)
    with transport.open(file, begin, end) as opened:
        log = log_bytes(opened, file)
        nothing = (SchemaVersion(0, "", None),)
        registry = TableRegistry(
            lambda _: True, mariadb=log.form.mariadb, versions=lambda _: nothing, named_versions=lambda _: nothing
        )
        windows = read_windows(log, span, registry, end, ignore_unfinished(log, newest=file == stop.file))
        return _in_windows(log, span, registry, shift, sought, windows)


def _in_windows(
    log: LogBytes, span: LogRange, registry: TableRegistry, shift: int, sought: Sought, windows: Iterator[Window]
) -> FoundTransaction | None:
    """Return the transaction that is sought. A long one spans several windows, and is complete in the last of them."""
    found: FoundTransaction | None = None
    notes = Notes(log, span, registry, (span.lognum + shift) * 10**12)
    for window in windows:
        for number in sought(log, window):
            found = found or _found(log, window, number)
            mine = window.index.rows[window.index.rows[:, w.R_TRANSACTION] == number, w.R_TABLE]
            for table, count in zip(*np.unique(mine, return_counts=True), strict=True):
                found.events.update(dict.fromkeys(registry.table_names([int(table)]), int(count)))
            if not window.more:
                kept = np.full(len(window.index.transactions), KEPT)
                found.notes += notes.of(window, kept, (found.start, found.end))
        if found and not window.more:
            return found
    return None


def _found(log: LogBytes, window: Window, number: int) -> FoundTransaction:
    start, end, outcome = (int(window.index.transactions[number, n]) for n in (w.T_START, w.T_END, w.T_OUTCOME))
    return FoundTransaction(log.name, start, end, gtid_at(log, start), outcome == w.DONE)
