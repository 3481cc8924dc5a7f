"""What a transaction contains, and whether it can be skipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from loader.errors import DataError, LoaderError, UnsupportedError, UsageError
from loader.model.table import TableName
from loader.schema.statements import Kind, effect
from loader.staging.documents import Manifest
from loader.staging.filters import CapturedTables
from loader.staging.notes.skips import RowCounts
from loader.transport.base import Transport

if TYPE_CHECKING:
    from loader.binlog.events.statement import LogStatement
    from loader.extract.transaction_search import FoundTransaction

_SHOWN = 200  # characters of a statement


def count_tables(found: FoundTransaction, transport: Transport) -> tuple[RowCounts, ...]:
    """Return the rows of each table in a transaction. They are 0 if they cannot be decoded."""
    from loader.extract.local_extraction import count_rows

    try:
        rows = count_rows(transport, found.begin, found.stop)
    except DataError:
        rows = {}
    counts = []
    for name, events in sorted(found.events.items()):
        inserts, updates, deletes = rows.get(name, (0, 0, 0))
        counts.append(RowCounts(table=str(name), events=events, inserts=inserts, updates=updates, deletes=deletes))
    return tuple(counts)


def check_rows_only(found: FoundTransaction, captures: CapturedTables) -> None:
    """Check that a transaction is committed and changes nothing but rows that the log has.

    Args:
        found: the transaction, which is no part of an XA transaction.
        captures: the captured tables.

    Raises:
        UnsupportedError: it has another statement, or ends in ROLLBACK.
    """
    from loader.binlog.events.statement import LogStatement

    place = {"position": found.begin, "gtid": found.gtid}
    if not found.is_done:
        options = table_options(filter(captures, found.events))
        raise UnsupportedError(
            "a transaction that is rolled back cannot be skipped",
            why="the log does not tell which of its changes were undone",
            hint=f"load its tables again: loader initial-load {options} --again; then: loader run",
            **place,
        )
    statements = [one for one in found.notes if isinstance(one, LogStatement)]
    if matters := next((one for one in statements if _matters(one, captures)), None):
        raise UnsupportedError(
            "a transaction with a statement that changes tables cannot be skipped",
            why=f"without it, the columns or rows of its tables are not known afterwards: {matters.text[:_SHOWN]}",
            hint="load the tables again that it changes: loader initial-load --table TABLE --again; give columns that"
            " the log does not tell: loader schema set TABLE --at POSITION --file FILE",
            **place,
        )


def table_options(tables: Iterable[TableName]) -> str:
    """Return the options of a command that name these tables; with a placeholder if there are none."""
    return " ".join(f"--table {table.argument}" for table in sorted(tables)) or "--table TABLE"


def _matters(statement: LogStatement, captures: CapturedTables) -> bool:
    found = effect(statement.text, statement.database, statement.sql_mode, statement.mariadb)
    if found.kind is Kind.SHADOW:
        return any(map(captures, found.tables))
    return found.kind is not Kind.NONE


def check_tables(found: FoundTransaction, captured: Sequence[str], named: Sequence[str]) -> None:
    """Check that a transaction has rows of captured tables, and of all tables that are named.

    Raises:
        UsageError: it has not.
    """
    has = ", ".join(captured) or "no captured table"
    if not captured:
        raise UsageError(
            "the transaction changes no captured table, so there is nothing to skip",
            hint="look at it with: loader inspect",
            position=found.begin,
        )
    if missing := [table for table in named if table not in captured]:
        raise UsageError(
            f"the transaction has no rows of {', '.join(missing)}",
            why=f"it has rows of {has}",
            hint=f"name some of them: --table {TableName.parse(captured[0]).argument}",
            position=found.begin,
        )


def check_not_staged(found: FoundTransaction, seqno: int, staged: Manifest | None, tables: Iterable[str]) -> None:
    """Check that the interval of a transaction is not staged, or lacks the rows of these tables from it on.

    Raises:
        UsageError: the rows of a table are staged.
    """
    if staged is None:
        return
    waiting = {one.table for one in staged.left_out if one.seqno <= seqno}
    if done := [table for table in tables if table not in waiting]:
        raise _staged_error(found, done, sorted(waiting & {*map(str, found.events)}))


def _staged_error(found: FoundTransaction, done: Sequence[str], waiting: Sequence[str]) -> LoaderError:
    name = TableName.parse(done[0])
    cure = f"correct the rows on the server; or load the table again: {name.load_again}"
    if waiting:
        options = " ".join(f"--table {TableName.parse(table).argument}" for table in waiting)
        cure = f"skip only the rows that are not staged: loader skip {found.begin} {options} --reason TEXT; or {cure}"
    return UsageError(
        "the transaction is staged already, and staged intervals never change",
        why=f"the rows of {', '.join(done)} are staged or applied",
        hint=cure,
        position=found.begin,
        gtid=found.gtid,
    )
