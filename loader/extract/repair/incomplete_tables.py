"""Tables of which an interval leaves rows out, since they cannot be staged: where, why, from where on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import TableName
from loader.staging.documents import IncompleteTable, Plan

if TYPE_CHECKING:  # the driver has no use for the codec
    from loader.binlog.table_registry import UnstagedRow


def find_incomplete_tables(
    plan: Plan, file: str, unread: Mapping[TableName, UnstagedRow]
) -> dict[TableName, IncompleteTable]:
    """What a manifest says of the tables that could not be read in a log file."""
    return {name: _of(plan, file, name, one) for name, one in unread.items()}


def first_per_table(found: Iterable[IncompleteTable]) -> tuple[IncompleteTable, ...]:
    """Of each table the first one by seqno and place, in the order of their names."""
    by_table: dict[str, IncompleteTable] = {}
    for one in sorted(found, key=lambda one: (one.table, one.seqno, Position.parse(one.position))):
        by_table.setdefault(one.table, one)
    return tuple(by_table.values())


def _of(plan: Plan, file: str, name: TableName, unread: UnstagedRow) -> IncompleteTable:
    error = unread.error
    column = f"column {error.where['column']}" if "column" in error.where else ""
    return IncompleteTable(
        table=str(name),
        seqno=unread.seqno,
        position=f"{file}:{unread.event}",
        at=unread.at or _inside(plan, unread.seqno),
        what=error.what,
        why=": ".join(filter(None, (column, error.why))),
        hint=unread.hint,
    )


def _inside(plan: Plan, seqno: int) -> str:
    """A place in the transaction: rows of it are read by what is said from there on, and none before."""
    number, end = divmod(seqno, SEQNO_UNIT)
    return str(Position(plan.interval.start.basename, number - plan.shift, end - 1))
