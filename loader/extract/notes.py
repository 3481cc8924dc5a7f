"""What a window of log notes beside its rows: statements for the driver to judge, and events of XA transactions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import HEADER, XA_PREPARE
from loader.binlog.index import placed
from loader.binlog.statement import LogStatement, read_query
from loader.binlog.xa import read_decision, read_prepare
from loader.extract.blocks import Window
from loader.extract.held import Decided, Prepared, XaEvent
from loader.extract.skipping import KEPT
from loader.reader.walking import LogBytes


def notes(
    log: LogBytes, window: Window, why: w.Ints, unit: int, mine: tuple[int, int]
) -> Iterator[LogStatement | XaEvent]:
    """The notes of a window whose events start in the bytes `mine`; `unit` is added to an offset to make a seqno.

    `why`: of each transaction why it is skipped, or KEPT. A group of an XA transaction is skipped by its own events,
    whoever decides it.

    Raises:
        BinlogFormatError: a damaged event.
    """
    for statement in window.index.statements:
        offset = int(statement[w.S_OFFSET])
        if mine[0] <= offset < mine[1]:
            with placed(log.name, offset):
                skipped = bool(why[statement[w.S_TRANSACTION]] != KEPT)
                yield _note(log, window, statement, unit, skipped)


def _note(log: LogBytes, window: Window, statement: w.Ints, unit: int, skipped: bool) -> LogStatement | XaEvent:
    event = window.statement(log, statement)
    number, file = int(statement[w.S_TRANSACTION]), log.name
    start, end, committed = (
        int(field) for field in window.index.transactions[number, [w.T_START, w.T_END, w.T_COMMITTED]]
    )
    rows = window.index.rows
    first, last = np.searchsorted(rows[:, w.R_TRANSACTION], (number, number + 1))
    captured = number in window.index.long or bool((rows[first:last, w.R_TABLE] >= 0).any())
    if event[4] == XA_PREPARE:
        return Prepared(read_prepare(event[HEADER:]).xid, file, start, end, captured, skipped)
    query = read_query(event[4], event[HEADER:])
    if decision := read_decision(query.text):
        return Decided(decision.xid, file, end, decision.commit, end + unit, committed)
    position = f"{file}:{statement[w.S_OFFSET]}"
    return LogStatement(
        end + unit,
        position,
        query.database,
        query.text,
        query.sql_mode,
        log.form.mariadb,
        captured,
        query.server_charset,
        skipped,
    )
