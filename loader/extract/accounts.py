"""The accounts of a range: each of its events once, and each of its row events staged, held or skipped for a reason."""

from __future__ import annotations

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import event_name
from loader.binlog.index import LogIndex
from loader.errors import UnsupportedError
from loader.extract.blocks import Window
from loader.extract.result import RangeResult
from loader.extract.skipping import KEPT, SKIPPED

UNCAPTURED = "row events of tables that are not captured"
LEFT_OUT = "row events of captured tables whose columns are not known there"


def account(result: RangeResult, window: Window, why: w.Ints, mine: tuple[int, int]) -> w.Ints:
    """Add what a window has in the bytes `mine` to the range's accounts; those of its row events that are to be staged.

    `why`: of each transaction why it is skipped, or KEPT. The row events that come back are not counted yet.

    Raises:
        UnsupportedError: row events of captured tables in a group that was rolled back.
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
        skip(result, UNCAPTURED, int((~captured).sum()))
        rows = rows[captured]
    return _done(result, index, why, rows) if index.transactions[:, w.T_OUTCOME].any() else rows


def _without_skipped(result: RangeResult, rows: w.Ints, why: w.Ints) -> w.Ints:
    reasons = why[rows[:, w.R_TRANSACTION]]
    for reason, name in SKIPPED.items():
        if number := int((reasons == reason).sum()):
            skip(result, name, number)
    kept: w.Ints = rows[reasons == KEPT]
    return kept


def skip(result: RangeResult, reason: str, number: int) -> None:
    """Count row events that are not staged."""
    result.row_events_skipped[reason] = result.row_events_skipped.get(reason, 0) + number


def _done(result: RangeResult, index: LogIndex, why: w.Ints, rows: w.Ints) -> w.Ints:
    """Of captured row events those of transactions that are done; those of prepared ones are held."""
    undone = (index.transactions[:, w.T_OUTCOME] == w.ROLLED_BACK) & (why == KEPT)
    every = index.rows[index.rows[:, w.R_TABLE] >= 0]
    _refuse_rolled_back(result.file, every[undone[every[:, w.R_TRANSACTION]]])
    outcomes = index.transactions[rows[:, w.R_TRANSACTION], w.T_OUTCOME]
    result.row_events_held += int((outcomes == w.PREPARED).sum())
    done: w.Ints = rows[outcomes == w.DONE]
    return done


def _refuse_rolled_back(file: str, undone: w.Ints) -> None:
    if len(undone):
        raise UnsupportedError(
            "a group that ends in ROLLBACK carries rows of a captured table",
            why="a table of an engine without transactions was changed inside a transaction that was rolled back",
            hint="convert the table to InnoDB and load it again, or exclude it",
            file=file,
            position=int(undone[0, w.R_EVENT]),
        )
