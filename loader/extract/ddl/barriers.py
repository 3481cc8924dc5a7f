"""Judging the statements of an interval: which are barriers, which stop the interval, and which can be ignored."""

from __future__ import annotations

from collections.abc import Iterable

from loader.binlog.events.statement import LogStatement
from loader.errors import LOAD_ALL_AGAIN, DataError
from loader.extract.ddl.indirect_writes import IndirectWrites
from loader.schema.statements import Effect, Kind, begins_with_row_verb, effect
from loader.staging.documents import Barrier, Plan, TableFilter
from loader.staging.filters import CapturedTables, matches_schema

_SHOWN = 1000  # characters of a statement that changes rows, which can be as long as a log file


def find_barriers(statements: Iterable[LogStatement], plan: Plan) -> tuple[Barrier, ...]:
    """Return the barriers among the statements of transactions that are not skipped, in log order.

    A barrier without tables stops all tables. It is a statement that cannot be read, or a statement that changed rows
    without row events and may reach captured tables through triggers, foreign keys, views or functions.

    Raises:
        DataError: a statement changed a marker table, so the log does not tell which transactions to skip.
    """
    captured, markers = CapturedTables(plan.tables), plan.skip.markers()
    judged = [(one, _effect(one, plan)) for one in sort_statements(statements)]
    indirect = IndirectWrites(plan, judged)
    barriers = []
    for statement, found in ((one, found) for one, found in judged if not one.skipped):
        concerned = tuple(str(name) for name in found.tables if captured(name))
        if found.kind is Kind.UNDO and statement.with_rows:
            barriers.append(_barrier(statement, statement.row_tables, plan))
        elif found.kind is Kind.ROWS:
            if marked := tuple(str(name) for name in found.tables if name in markers):
                raise _statement_format(statement, marked)
            barriers += _unlogged(statement, found, concerned, plan, indirect)
        elif found.kind in (Kind.BARRIER, Kind.SHADOW) and (concerned or _unknown(found, plan.tables)):
            barriers.append(_barrier(statement, concerned, plan))
    return tuple(barriers)


def _effect(statement: LogStatement, plan: Plan) -> Effect:
    return effect(statement.text, statement.database, statement.sql_mode, statement.mariadb, folds=plan.folds)


def sort_statements(statements: Iterable[LogStatement]) -> list[LogStatement]:
    """Return the statements in log order."""
    return sorted(statements, key=lambda s: (s.seqno, int(s.position.rpartition(":")[2])))


def _unlogged(
    statement: LogStatement, found: Effect, concerned: tuple[str, ...], plan: Plan, indirect: IndirectWrites
) -> list[Barrier]:
    """Return the barrier of a statement that changes rows, if it may change captured tables directly or indirectly."""
    if not found.tables or indirect.may_follow(statement, found.tables):
        return [_barrier(statement, (), plan)]
    return [_barrier(statement, concerned, plan)] if concerned else []


def _barrier(statement: LogStatement, tables: tuple[str, ...], plan: Plan) -> Barrier:
    return Barrier(
        seqno=statement.seqno,
        position=statement.position,
        statement=statement.text[:_SHOWN] if begins_with_row_verb(statement.text) else statement.text,
        database=statement.database,
        sql_mode=statement.sql_mode,
        mariadb=statement.mariadb,
        tables=tables,
        folds=plan.folds,
        unlogged_cascades=plan.unlogged_cascades,
    )


def _unknown(found: Effect, tables: TableFilter) -> bool:
    """Return whether a statement that names no captured table may concern captured tables."""
    if found.tables:
        return False
    if not found.schema:
        return True
    return matches_schema(found.schema, tables.include)


def _statement_format(statement: LogStatement, concerned: tuple[str, ...]) -> DataError:
    return DataError(
        "the log holds a statement that changed rows, instead of the rows",
        why=f"a session logged with binlog_format=STATEMENT or MIXED: {statement.text[:200]}",
        hint=f"SET GLOBAL binlog_format=ROW, then {LOAD_ALL_AGAIN}",
        position=statement.position,
        table=", ".join(concerned),
    )
