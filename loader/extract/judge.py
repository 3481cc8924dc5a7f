"""Judging the statements of an interval: which are barriers, which stop it, which may be passed over."""

from __future__ import annotations

from collections.abc import Iterable

from loader.binlog.statement import LogStatement
from loader.errors import DataError, UnsupportedError
from loader.schema.statements import Effect, Kind, effect
from loader.staging.documents import Barrier, Skip, TableFilter
from loader.staging.filters import Captured, matches_schema


def judge(statements: Iterable[LogStatement], tables: TableFilter, skip: Skip) -> tuple[Barrier, ...]:
    """The barriers among the statements of transactions that are not skipped, in log order.

    Raises:
        DataError: rows of a captured or a marker table changed by a statement, so that the log does not hold them.
        UnsupportedError: a part of a transaction with rows of captured tables is taken back.
    """
    captured, markers = Captured(tables), skip.markers()
    barriers = []
    for statement in in_order(one for one in statements if not one.skipped):
        found = effect(statement.text, statement.database, statement.sql_mode, statement.mariadb)
        concerned = tuple(str(name) for name in found.tables if captured(name))
        if found.kind is Kind.UNDO and statement.beside_rows:
            raise _refused(statement)
        if found.kind is Kind.ROWS:
            marked = tuple(str(name) for name in found.tables if name in markers)
            if concerned or marked or not found.tables:
                raise _statement_format(statement, (*concerned, *marked))
        if found.kind is Kind.BARRIER and (concerned or _unknown(found, tables)):
            barriers.append(
                Barrier(
                    seqno=statement.seqno,
                    position=statement.position,
                    statement=statement.text,
                    database=statement.database,
                    sql_mode=statement.sql_mode,
                    mariadb=statement.mariadb,
                    tables=concerned,
                )
            )
    return tuple(barriers)


def in_order(statements: Iterable[LogStatement]) -> list[LogStatement]:
    """The statements in the order of the log."""
    return sorted(statements, key=lambda s: (s.seqno, int(s.position.rpartition(":")[2])))


def _unknown(found: Effect, tables: TableFilter) -> bool:
    """Whether captured tables can be meant though none is named."""
    if found.tables:
        return False
    if not found.schema:
        return True
    return matches_schema(found.schema, tables.include)


def _statement_format(statement: LogStatement, concerned: tuple[str, ...]) -> DataError:
    return DataError(
        "rows were changed by a statement in the log, which does not say which rows",
        why=f"a session logged with binlog_format=STATEMENT or MIXED: {statement.text[:200]}",
        hint="SET GLOBAL binlog_format=ROW, then load the tables again from a position after this one",
        position=statement.position,
        table=", ".join(concerned) or "any",
    )


def _refused(statement: LogStatement) -> UnsupportedError:
    return UnsupportedError(
        f"{statement.text[:80]!r} takes back rows of captured tables that are logged before it",
        why="a table of an engine without transactions was changed in the transaction, so that the log keeps them all",
        hint="convert such tables to InnoDB, then load the tables again from a position after this one",
        position=statement.position,
    )
