"""What a window of log notes beside its rows: statements for the driver to judge, and events of XA transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import HEADER, XA_PREPARE
from loader.binlog.events.statement import LogStatement, read_query
from loader.binlog.events.xa import read_decision, read_prepare
from loader.binlog.index import error_place
from loader.binlog.table_registry import TableRegistry
from loader.extract.gtids.skipped_transactions import KEPT, READ_BEFORE
from loader.extract.log_ranges import LogRange
from loader.extract.windows import Window, tables_in_transaction
from loader.extract.xa_events import Decided, Prepared, XaEvent
from loader.reader.files.log_walk import LogBytes
from loader.schema.statements import Kind, effect

ROLLED_BACK = "ROLLBACK"
"""Stands for the end of a transaction that the log holds though it was rolled back."""


@dataclass(frozen=True)
class Notes:
    """Reads the notes of the windows of one range; `unit` is added to an offset to make a seqno."""

    log: LogBytes
    span: LogRange
    registry: TableRegistry
    unit: int

    def of(self, window: Window, why: w.Ints, mine: tuple[int, int]) -> Iterator[LogStatement | XaEvent]:
        """The notes of a window whose events start in the bytes `mine`.

        A statement inside a prepared XA transaction is none of them: it counts from the XA COMMIT, see `released`.
        One that was prepared and read before on another server is held here all the same: its outcome may be new.

        `why`: of each transaction why it is skipped, or KEPT. A group of an XA transaction is skipped by its own
        events, whoever decides it.

        Raises:
            BinlogFormatError: a damaged event.
        """
        for statement in window.index.statements:
            number, offset = int(statement[w.S_TRANSACTION]), int(statement[w.S_OFFSET])
            if mine[0] <= offset < mine[1]:
                event = window.statement(self.log, statement)
                skipped, before = bool(why[number] != KEPT), bool(why[number] == READ_BEFORE)
                with error_place(self.log.name, offset):
                    if event[4] == XA_PREPARE:
                        yield self._prepared(window, number, event, skipped and not before)
                    elif not _is_prepared(window, number):
                        note = self._statement(window, statement, event, skipped)
                        # What a commit released that was read before is staged: here its group comes to nothing.
                        yield note._replace(commit=False) if before and isinstance(note, Decided) else note
        if not window.more:
            yield from self._rolled_back(window, why, mine)

    def released(self, window: Window, seqnos: Mapping[int, int]) -> Iterator[LogStatement]:
        """The statements of XA transactions that are committed, as of that; `seqnos`: by where they start."""
        for statement in window.index.statements:
            number, offset = int(statement[w.S_TRANSACTION]), int(statement[w.S_OFFSET])
            event = window.statement(self.log, statement)
            seqno = seqnos.get(int(window.index.transactions[number, w.T_START]))
            if seqno and event[4] != XA_PREPARE:
                with error_place(self.log.name, offset):
                    yield self._note(window, number, offset, event, seqno)

    def _prepared(self, window: Window, number: int, event: bytes, skipped: bool) -> Prepared:
        start, end = (int(field) for field in window.index.transactions[number, [w.T_START, w.T_END]])
        mine = window.index.statements[window.index.statements[:, w.S_TRANSACTION] == number]
        others = (one for one in (window.statement(self.log, each) for each in mine) if one[4] != XA_PREPARE)
        matters = _has_rows(window, number) or any(map(self._changes_rows, others))
        return Prepared(read_prepare(event[HEADER:]).xid, self.log.name, start, end, matters, skipped)

    def _changes_rows(self, event: bytes) -> bool:
        query = read_query(event[4], event[HEADER:])
        found = effect(query.text, query.database, query.sql_mode, self.log.form.mariadb)
        return found.kind in (Kind.ROWS, Kind.UNDO)

    def _statement(self, window: Window, statement: w.Ints, event: bytes, skipped: bool) -> LogStatement | Decided:
        number = int(statement[w.S_TRANSACTION])
        end, committed = (int(field) for field in window.index.transactions[number, [w.T_END, w.T_COMMITTED]])
        if decision := read_decision(read_query(event[4], event[HEADER:]).text):
            return Decided(decision.xid, self.log.name, end, decision.commit, end + self.unit, committed)
        return self._note(window, number, int(statement[w.S_OFFSET]), event, end + self.unit, skipped)

    def _note(
        self, window: Window, number: int, offset: int, event: bytes, seqno: int, skipped: bool = False
    ) -> LogStatement:
        query = read_query(event[4], event[HEADER:])
        beside = _has_rows(window, number)
        undone = beside and query.text.lstrip()[: len(ROLLED_BACK)].upper() == ROLLED_BACK
        return LogStatement(
            seqno,
            f"{self.log.name}:{offset}",
            query.database,
            query.text,
            query.sql_mode,
            self.log.form.mariadb,
            beside,
            query.server_charset,
            skipped,
            tables_in_transaction(self.log, self.span, self.registry, window, number) if undone else (),
        )

    def _rolled_back(self, window: Window, why: w.Ints, mine: tuple[int, int]) -> Iterator[LogStatement]:
        """Transactions with captured rows that end in ROLLBACK."""
        transactions = window.index.transactions
        for number in np.flatnonzero((transactions[:, w.T_OUTCOME] == w.ROLLED_BACK) & (why == KEPT)).tolist():
            start, end = (int(field) for field in transactions[number, [w.T_START, w.T_END]])
            if mine[0] <= start < mine[1] and _has_rows(window, number):
                tables = tables_in_transaction(self.log, self.span, self.registry, window, number)
                place, mariadb = f"{self.log.name}:{start}", self.log.form.mariadb
                yield LogStatement(end + self.unit, place, "", ROLLED_BACK, 0, mariadb, bool(tables), row_tables=tables)


def _has_rows(window: Window, number: int) -> bool:
    """Whether a transaction has rows of captured tables; of one without an index it is taken for granted."""
    rows = window.index.rows
    first, last = np.searchsorted(rows[:, w.R_TRANSACTION], (number, number + 1))
    return number in window.index.long or bool((rows[first:last, w.R_TABLE] >= 0).any())


def _is_prepared(window: Window, number: int) -> bool:
    return bool(window.index.transactions[number, w.T_OUTCOME] == w.PREPARED)
