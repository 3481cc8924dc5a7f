"""Captured tables whose virtual columns may have wrong values in the log: see loader.source.update_triggers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loader.binlog.events.statement import LogStatement
from loader.extract.repair.incomplete_tables import inside
from loader.model.table import TableName
from loader.schema.lexer import UnreadableError
from loader.schema.triggers import read_update_trigger
from loader.source.update_triggers import STALE
from loader.staging.documents import IncompleteTable, Plan
from loader.staging.filters import CapturedTables


def find_stale_tables(plan: Plan, statements: Iterable[LogStatement]) -> Iterator[IncompleteTable]:
    """Yield the tables with virtual columns that have a BEFORE UPDATE trigger in the interval, maybe several times.

    They are incomplete from the statement on that creates the trigger, or in the whole interval if the server has it.
    """
    captured = CapturedTables(plan.tables)
    for name in filter(captured, map(TableName.parse, plan.unlogged.triggered)):
        yield _incomplete(plan, name, plan.start_seqno + 1, plan.start, plan.start)
    virtual = {TableName.parse(name) for name in (*plan.unlogged.virtual, *plan.unlogged_before.virtual)}
    mine = sorted(filter(captured, virtual))
    for statement in statements if mine else ():
        # A skipped statement has created the trigger as well.
        for name in _triggered(plan, statement, mine) if not statement.read_before else ():
            yield _incomplete(plan, name, statement.seqno, statement.position, inside(plan, statement.seqno))


def _triggered(plan: Plan, statement: LogStatement, tables: Sequence[TableName]) -> Sequence[TableName]:
    """Return which of the tables have a trigger by a statement: all if it cannot be read."""
    try:
        found = read_update_trigger(
            statement.text, statement.database, statement.sql_mode, statement.mariadb, folds=plan.folds
        )
    except UnreadableError:
        return tables
    return [table for table in tables if table == found]


def _incomplete(plan: Plan, name: TableName, seqno: int, place: str, at: str) -> IncompleteTable:
    return IncompleteTable(
        table=str(name),
        seqno=seqno,
        last_seqno=plan.stop_seqno,
        position=place,
        at=at,
        what="the log may have wrong values of virtual columns",
        why=f"{STALE}, and the table has a trigger of this kind",
        hint="drop the trigger, or make the columns STORED",
    )
