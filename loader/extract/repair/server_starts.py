"""MEMORY tables that a start of a MariaDB server emptied: see loader.source.memory_tables.

A table is truncated where the server started, if it certainly was a MEMORY table then. Otherwise it is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loader.extract.range_result import RangeResult
from loader.extract.repair.incomplete_tables import inside
from loader.model.table import TableName
from loader.schema.changes import Created, Dropped, SchemaDefined, SchemaDropped, TableChange, Truncated
from loader.schema.statement_reader import table_changes
from loader.schema.statements import writes_by_statement
from loader.source.schemas import quote_table
from loader.staging.documents import Barrier, IncompleteTable, Plan
from loader.staging.filters import CapturedTables


def empty_memory_tables(
    plan: Plan, results: Iterable[RangeResult], barriers: Sequence[Barrier]
) -> tuple[list[Barrier], list[IncompleteTable]]:
    """Return the barriers that empty MEMORY tables where the server started, and the tables that are incomplete there.

    Args:
        plan: of the interval.
        results: of its ranges.
        barriers: the statements of the interval.
    """
    starts = [(f"{result.file}:4", result.started) for result in results if result.started]
    emptied: list[Barrier] = []
    unsure: list[IncompleteTable] = []
    for name in _memory_tables(plan) if starts else ():
        concerned = [one for one in barriers if not one.tables or str(name) in one.tables]
        if _is_certain(plan, name, concerned):
            emptied += (_truncation(name, place, seqno, plan) for place, seqno in starts)
        else:
            unsure += (
                _incomplete(plan, name, place, seqno)
                for place, seqno in starts
                if not _is_settled(concerned, name, seqno)
            )
    return emptied, unsure


def _memory_tables(plan: Plan) -> list[TableName]:
    captured = CapturedTables(plan.tables)
    names = map(TableName.parse, {*plan.unlogged.memory, *plan.unlogged_before.memory})
    return sorted(filter(captured, names))


def _is_certain(plan: Plan, name: TableName, concerned: Iterable[Barrier]) -> bool:
    """Return whether the table was a MEMORY table of this name in the whole interval, and all its rows are in the log.

    After a failover, rows may be in the table that were read from the server before.
    """
    read_inside = bool(plan.unlogged_at) and plan.unlogged_at == plan.stop
    known = read_inside and str(name) in plan.unlogged.memory and not plan.read_before
    return known and not any(map(_defines, concerned))


def _defines(barrier: Barrier) -> bool:
    """Return whether a statement may change more of its tables than their rows."""
    return not all(isinstance(change, Truncated | SchemaDefined) for change in _changes(barrier))


def _changes(barrier: Barrier) -> tuple[TableChange, ...]:
    """Return the changes of tables by a statement; none if it changes rows."""
    where = (barrier.statement, barrier.database, barrier.sql_mode, barrier.mariadb)
    return () if writes_by_statement(*where) else table_changes(*where, folds=barrier.folds)


def _is_settled(concerned: Iterable[Barrier], name: TableName, seqno: int) -> bool:
    """Return whether a later statement removes all rows of the table, or shows that there was no table.

    The server itself logs a TRUNCATE when a session first opens the table.
    """
    return any(_removes_rows(change, name) for one in concerned if one.seqno > seqno for change in _changes(one))


def _removes_rows(change: TableChange, name: TableName) -> bool:
    match change:
        case Truncated(table) | Dropped(table):
            return table == name
        case Created(table, if_not_exists=False):
            return table == name
        case SchemaDropped(schema):
            return schema == name.schema
    return False


def _truncation(name: TableName, place: str, seqno: int, plan: Plan) -> Barrier:
    return Barrier(
        seqno=seqno,
        position=place,
        statement=f"TRUNCATE TABLE {quote_table(name)} /* the server started */",
        database="",
        sql_mode=0,
        mariadb=True,
        tables=(str(name),),
        folds=plan.folds,
    )


def _incomplete(plan: Plan, name: TableName, place: str, seqno: int) -> IncompleteTable:
    return IncompleteTable(
        table=str(name),
        seqno=seqno,
        last_seqno=seqno,
        position=place,
        at=inside(plan, seqno),
        what="a restart of the server may have emptied the table without a log entry",
        why="it is or was a MEMORY table, and its engine at the restart is not known",
        hint=f"ALTER TABLE {name} ENGINE = InnoDB on the server, if it must keep its rows",
    )
