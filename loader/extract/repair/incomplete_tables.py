"""Incomplete tables: tables of which an interval lacks rows because they cannot be staged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import TableName
from loader.schema.changes import CASCADES
from loader.staging.documents import IncompleteTable, Plan
from loader.staging.filters import CapturedTables

if TYPE_CHECKING:  # the driver does not need the codec
    from loader.binlog.table_registry import UnstagedRow


def find_incomplete_tables(
    plan: Plan, file: str, unread: Mapping[TableName, UnstagedRow], *, prepared: bool = False
) -> dict[TableName, IncompleteTable]:
    """Return the manifest entries of tables whose rows in a log file could not be staged.

    `prepared`: the rows are those of prepared XA transactions, which cannot be skipped.
    """
    return {name: _of(plan, file, name, one, one.alone and not prepared) for name, one in unread.items()}


def list_unlogged_tables(plan: Plan) -> list[IncompleteTable]:
    """Return the manifest entries of tables whose rows foreign keys change, since the server stopped logging that.

    Where in the interval it did so is unknown. So every row may be missing.
    """
    captured = CapturedTables(plan.tables)
    return [
        IncompleteTable(
            table=name,
            seqno=plan.start_seqno + 1,
            last_seqno=plan.stop_seqno,
            position=plan.start,
            at=plan.start,
            what="the server stopped logging the rows that foreign keys change",
            why=CASCADES,
            hint="make the foreign keys RESTRICT on the server, or let it log these rows",
        )
        for name in plan.cascading
        if captured(TableName.parse(name))
    ]


def one_per_table(found: Iterable[IncompleteTable]) -> tuple[IncompleteTable, ...]:
    """Return one entry per table, from its first missing row to its last one, sorted by table name."""
    by_table: dict[str, IncompleteTable] = {}
    for one in sorted(found, key=lambda one: (one.table, one.seqno, Position.parse(one.position))):
        first = by_table.setdefault(one.table, one)
        by_table[one.table] = first.model_copy(update={"last_seqno": max(first.last_seqno, one.last_seqno)})
    return tuple(by_table.values())


def _of(plan: Plan, file: str, name: TableName, unread: UnstagedRow, skippable: bool) -> IncompleteTable:
    error = unread.error
    column = f"column {error.where['column']}" if "column" in error.where else ""
    return IncompleteTable(
        table=str(name),
        seqno=unread.seqno,
        last_seqno=unread.last_seqno,
        position=f"{file}:{unread.event}",
        at=unread.at if unread.at and _is_before(plan, unread.at, unread.seqno) else inside(plan, unread.seqno),
        what=error.what,
        why=": ".join(filter(None, (column, error.why))),
        hint=unread.hint,
        skippable=skippable,
    )


def _is_before(plan: Plan, at: str, seqno: int) -> bool:
    """Return whether a position is before the end of a transaction. A CREATE TABLE ... SELECT makes its own table."""
    return Position.parse(at).seqno(plan.shift) < seqno


def inside(plan: Plan, seqno: int) -> str:
    """Return a position inside the transaction: definitions given there apply to its rows and to no earlier rows."""
    number, end = divmod(seqno, SEQNO_UNIT)
    return str(Position(plan.interval.start.basename, number - plan.shift, end - 1))
