"""Counting the events of a range: each event once, and each row event as staged, held or skipped for a reason."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import event_name
from loader.binlog.index import LogIndex
from loader.binlog.table_registry import TableRegistry
from loader.extract.gtids.skipped_transactions import BY_OPERATOR, KEPT, SKIPPED, SkippedTransactions
from loader.extract.range_result import RangeResult
from loader.extract.windows import Window

UNCAPTURED = "row events of tables that are not captured"
LEFT_OUT = "row events of captured tables whose columns are not known there"
UNREADABLE = "row events of captured tables that cannot be staged"
ROLLED_BACK = "row events of captured tables in transactions that end in ROLLBACK"
SKIPPED_TABLES = "row events of tables that an operator skipped in a transaction"
SKIPPED_BYTES = "bytes of transactions that an operator skipped"


def count_events(
    result: RangeResult,
    window: Window,
    skipped: SkippedTransactions,
    registry: TableRegistry,
    byte_range: tuple[int, int],
) -> w.Ints:
    """Count the events of a window in a byte range, and return its row events to stage, which are not counted yet.

    Args:
        result: of the range.
        window: of the range.
        skipped: the transactions and tables to skip.
        registry: of the tables.
        byte_range: first and end byte.
    """
    index = window.index
    for kind in np.flatnonzero(index.counts[:256]):
        name = event_name(int(kind))
        result.event_types[name] = result.event_types.get(name, 0) + int(index.counts[kind])
    result.bytes += int(index.counts[256])
    starts = index.transactions[:, w.T_START]
    begun = index.transactions[(starts >= byte_range[0]) & (starts < byte_range[1])]
    result.transactions += 0 if window.more else len(begun)
    result.committed = max(result.committed, int(begun[:, w.T_COMMITTED].max(initial=0)))
    rows = index.rows[slice(*np.searchsorted(index.rows[:, w.R_EVENT], byte_range).tolist())]
    result.row_events += len(rows)
    result.skips |= skipped.keys
    if not window.more:
        result.bytes_skipped += _bytes_of(index.transactions[skipped.why == BY_OPERATOR], byte_range)
    if skipped.why.any():
        rows = _without_skipped(result, rows, skipped.why)
    for number, names in skipped.tables.items():
        rows = _without_tables(result, rows, number, registry.numbers_of(names))
    captured = rows[:, w.R_TABLE] >= 0
    if not captured.all():
        count_skipped(result, UNCAPTURED, int((~captured).sum()))
        rows = rows[captured]
    return _done(result, index, rows) if index.transactions[:, w.T_OUTCOME].any() else rows


def _without_skipped(result: RangeResult, rows: w.Ints, why: w.Ints) -> w.Ints:
    reasons = why[rows[:, w.R_TRANSACTION]]
    for reason, name in SKIPPED.items():
        if number := int((reasons == reason).sum()):
            count_skipped(result, name, number)
    kept: w.Ints = rows[reasons == KEPT]
    return kept


def _without_tables(result: RangeResult, rows: w.Ints, number: int, tables: Iterable[int]) -> w.Ints:
    """Return the row events without those of some tables in one transaction."""
    mine = (rows[:, w.R_TRANSACTION] == number) & np.isin(rows[:, w.R_TABLE], list(tables))
    if mine.any():
        count_skipped(result, SKIPPED_TABLES, int(mine.sum()))
    kept: w.Ints = rows[~mine]
    return kept


def _bytes_of(transactions: w.Ints, byte_range: tuple[int, int]) -> int:
    """Return how many bytes of these transactions are in a byte range."""
    within = np.clip(transactions[:, [w.T_START, w.T_END]], *byte_range)
    return int((within[:, 1] - within[:, 0]).sum())


def count_skipped(result: RangeResult, reason: str, number: int) -> None:
    """Count row events that are not staged."""
    result.row_events_skipped[reason] = result.row_events_skipped.get(reason, 0) + number


def _done(result: RangeResult, index: LogIndex, rows: w.Ints) -> w.Ints:
    """Return the captured row events of finished transactions. Those of prepared transactions are counted as held.

    Row events of transactions that end in ROLLBACK are counted as skipped. A barrier stops their tables: see
    `window_notes`.
    """
    outcomes = index.transactions[rows[:, w.R_TRANSACTION], w.T_OUTCOME]
    result.row_events_held += int((outcomes == w.PREPARED).sum())
    if undone := int((outcomes == w.ROLLED_BACK).sum()):
        count_skipped(result, ROLLED_BACK, undone)
    done: w.Ints = rows[outcomes == w.DONE]
    return done
