"""The accounts of a range: each of its events once, and each of its row events staged, held or skipped for a reason."""

from __future__ import annotations

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import event_name
from loader.binlog.index import LogIndex
from loader.extract.gtids.skipped_transactions import KEPT, SKIPPED
from loader.extract.range_result import RangeResult
from loader.extract.windows import Window

UNCAPTURED = "row events of tables that are not captured"
LEFT_OUT = "row events of captured tables whose columns are not known there"
UNREADABLE = "row events of captured tables that cannot be staged"
ROLLED_BACK = "row events of captured tables in transactions that end in ROLLBACK"


def count_events(result: RangeResult, window: Window, why: w.Ints, mine: tuple[int, int]) -> w.Ints:
    """Add what a window has in the bytes `mine` to the range's accounts; those of its row events that are to be staged.

    `why`: of each transaction why it is skipped, or KEPT. The row events that come back are not counted yet.
    """
    index = window.index
    for kind in np.flatnonzero(index.counts[:256]):
        name = event_name(int(kind))
        result.event_types[name] = result.event_types.get(name, 0) + int(index.counts[kind])
    result.bytes += int(index.counts[256])
    starts = index.transactions[:, w.T_START]
    begun = index.transactions[(starts >= mine[0]) & (starts < mine[1])]
    result.transactions += 0 if window.more else len(begun)
    result.committed = max(result.committed, int(begun[:, w.T_COMMITTED].max(initial=0)))
    rows = index.rows[slice(*np.searchsorted(index.rows[:, w.R_EVENT], mine).tolist())]
    result.row_events += len(rows)
    if why.any():
        rows = _without_skipped(result, rows, why)
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


def count_skipped(result: RangeResult, reason: str, number: int) -> None:
    """Count row events that are not staged."""
    result.row_events_skipped[reason] = result.row_events_skipped.get(reason, 0) + number


def _done(result: RangeResult, index: LogIndex, rows: w.Ints) -> w.Ints:
    """Of captured row events those of transactions that are done; those of prepared ones are held.

    Those of transactions that end in ROLLBACK are counted: a barrier stops their tables there, see `notes`.
    """
    outcomes = index.transactions[rows[:, w.R_TRANSACTION], w.T_OUTCOME]
    result.row_events_held += int((outcomes == w.PREPARED).sum())
    if undone := int((outcomes == w.ROLLED_BACK).sum()):
        count_skipped(result, ROLLED_BACK, undone)
    done: w.Ints = rows[outcomes == w.DONE]
    return done
