"""The notes of a log window: statements for the driver to judge, and events of XA transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import HEADER, XA_PREPARE
from loader.binlog.events.statement import LogStatement, read_query
from loader.binlog.events.xa import read_decision, read_prepare
from loader.binlog.index import error_place
from loader.binlog.table_registry import TableRegistry
from loader.extract.gtids.skipped_transactions import KEPT, READ_BEFORE
from loader.extract.literals import converted_text
from loader.extract.log_ranges import LogRange
from loader.extract.windows import Window, tables_in_transaction
from loader.extract.xa_events import Decided, Prepared, XaEvent
from loader.reader.files.log_walk import LogBytes
from loader.schema.statements import Kind, effect, effective_text

ROLLED_BACK = "ROLLBACK"
"""The statement noted for a transaction that is in the log although it was rolled back."""


@dataclass(frozen=True)
class Notes:
    """Reads what the walk noted in each window of one range: statements and XA events. A seqno is `unit` + offset."""

    log: LogBytes
    span: LogRange
    registry: TableRegistry
    unit: int

    def of(self, window: Window, why: w.Ints, byte_range: tuple[int, int]) -> Iterator[LogStatement | XaEvent]:
        """Yield the notes of a window whose events start in a byte range.

        A statement inside a prepared XA transaction is not among them: it takes effect at the XA COMMIT, see
        `released`. A transaction that another server prepared, and that was read there, is held again: its outcome may
        be new.

        Args:
            window: of the range.
            why: for each transaction its skip reason, or KEPT. The events of an XA group decide whether it is skipped,
                not its XA COMMIT.
            byte_range: first and end byte.

        Raises:
            BinlogFormatError: a damaged event.
        """
        for statement in window.index.statements:
            number, offset = int(statement[w.S_TRANSACTION]), int(statement[w.S_OFFSET])
            if byte_range[0] <= offset < byte_range[1]:
                event = window.statement(self.log, statement)
                skipped, before = bool(why[number] != KEPT), bool(why[number] == READ_BEFORE)
                with error_place(self.log.name, offset):
                    if event[4] == XA_PREPARE:
                        yield self._prepared(window, number, event, skipped and not before)
                    elif not _is_prepared(window, number):
                        note = self._statement(window, statement, event, skipped)
                        yield _as_read_before(note) if before else note
        if not window.more:
            yield from self._rolled_back(window, why, byte_range)

    def released(self, window: Window, seqnos: Mapping[int, int]) -> Iterator[LogStatement]:
        """Yield the statements of committed XA transactions with the seqno of their commit.

        `seqnos`: the seqno of each committed transaction, by the byte where it starts.
        """
        for statement in window.index.statements:
            number, offset = int(statement[w.S_TRANSACTION]), int(statement[w.S_OFFSET])
            event = window.statement(self.log, statement)
            seqno = seqnos.get(int(window.index.transactions[number, w.T_START]))
            if seqno and event[4] != XA_PREPARE:
                with error_place(self.log.name, offset):
                    yield self._note(window, statement, event, seqno)

    def _prepared(self, window: Window, number: int, event: bytes, skipped: bool) -> Prepared:
        start, end = (int(field) for field in window.index.transactions[number, [w.T_START, w.T_END]])
        statements = window.index.statements[window.index.statements[:, w.S_TRANSACTION] == number]
        others = (one for one in (window.statement(self.log, each) for each in statements) if one[4] != XA_PREPARE)
        matters = _has_rows(window, number) or _has_watched(window, number) or any(map(self._changes_rows, others))
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
        return self._note(window, statement, event, end + self.unit, skipped)

    def _note(self, window: Window, statement: w.Ints, event: bytes, seqno: int, skipped: bool = False) -> LogStatement:
        query = read_query(event[4], event[HEADER:], begun=bool(statement[w.S_BEGUN]))
        number = int(statement[w.S_TRANSACTION])
        beside = _has_rows(window, number)
        mariadb = self.log.form.mariadb
        text = converted_text(query, mariadb=mariadb)
        if query.failed:
            text = effective_text(text, query.database, query.sql_mode, mariadb)
        undone = beside and query.text.lstrip()[: len(ROLLED_BACK)].upper() == ROLLED_BACK
        return LogStatement(
            seqno,
            f"{self.log.name}:{statement[w.S_OFFSET]}",
            query.database,
            text,
            query.sql_mode,
            mariadb,
            beside,
            query.server_charset,
            skipped,
            tables_in_transaction(self.log, self.span, self.registry, window, number) if undone else (),
        )

    def _rolled_back(self, window: Window, why: w.Ints, byte_range: tuple[int, int]) -> Iterator[LogStatement]:
        """Yield a statement for each transaction with captured rows that ends in ROLLBACK."""
        transactions = window.index.transactions
        for number in np.flatnonzero((transactions[:, w.T_OUTCOME] == w.ROLLED_BACK) & (why == KEPT)).tolist():
            start, end = (int(field) for field in transactions[number, [w.T_START, w.T_END]])
            if byte_range[0] <= start < byte_range[1] and _has_rows(window, number):
                tables = tables_in_transaction(self.log, self.span, self.registry, window, number)
                place, mariadb = f"{self.log.name}:{start}", self.log.form.mariadb
                yield LogStatement(end + self.unit, place, "", ROLLED_BACK, 0, mariadb, bool(tables), row_tables=tables)


def _has_rows(window: Window, number: int) -> bool:
    """Return whether a transaction has rows of captured tables; True for a transaction without an index."""
    rows = window.index.rows
    first, last = np.searchsorted(rows[:, w.R_TRANSACTION], (number, number + 1))
    return number in window.index.long or bool((rows[first:last, w.R_TABLE] >= 0).any())


def _has_watched(window: Window, number: int) -> bool:
    """Return whether a transaction has rows of tables whose changes may change captured tables."""
    rows = window.index.rows
    return bool((rows[rows[:, w.R_TRANSACTION] == number, w.R_TABLE] <= w.WATCHED).any())


def _is_prepared(window: Window, number: int) -> bool:
    return bool(window.index.transactions[number, w.T_OUTCOME] == w.PREPARED)


def _as_read_before(note: LogStatement | Decided) -> LogStatement | Decided:
    """Return a note of a transaction that was read before: the rows of a commit are staged, so its group is dropped."""
    return note._replace(commit=False) if isinstance(note, Decided) else replace(note, read_before=True)
