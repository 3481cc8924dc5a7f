"""BEFORE UPDATE triggers of tables with virtual columns: MariaDB before 11 can log wrong values of these columns.

If an UPDATE of several tables collects its rows in a temporary table first, as with ORDER BY, the log has the values of
virtual columns from before the trigger (seen on 10.11). From version 11 on the log has no generated columns of updates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from pymysql.connections import Connection

from loader.errors import UnsupportedError
from loader.model.table import TableName
from loader.resources import sql
from loader.source.server_facts import query, read_identity

STALE = "MariaDB can log the values of virtual columns from before a BEFORE UPDATE trigger"
_FIRST_WITHOUT = 11


class VirtualTables(NamedTuple):
    """Captured tables with virtual columns, and those of them with a BEFORE UPDATE trigger that the user may see."""

    virtual: tuple[str, ...]
    triggered: tuple[str, ...]


def logs_virtual_columns(connection: Connection[Any]) -> bool:
    """Return whether the server is a MariaDB server that logs virtual columns of updates."""
    identity = read_identity(connection)
    return identity.kind == "mariadb" and int(identity.version.split(".")[0]) < _FIRST_WITHOUT


def find_virtual_tables(connection: Connection[Any], captured: Callable[[TableName], bool]) -> VirtualTables:
    """Return the captured tables with virtual columns; none if the server does not log virtual columns of updates."""
    if not logs_virtual_columns(connection):
        return VirtualTables((), ())
    virtual = [name for name in _tables(connection, "source/virtual_tables") if captured(name)]
    triggered = set(_tables(connection, "source/update_triggers")) if virtual else set()
    return VirtualTables(tuple(map(str, virtual)), tuple(str(name) for name in virtual if name in triggered))


def check_update_triggers(connection: Connection[Any], table: TableName, virtual: Collection[str]) -> None:
    """Check that no BEFORE UPDATE trigger changes a table with these virtual columns.

    Raises:
        UnsupportedError: a trigger does, or the user may not see the triggers of the table.
    """
    if not logs_virtual_columns(connection):
        return
    columns = ", ".join(sorted(virtual))
    if table in _tables(connection, "source/update_triggers"):
        raise _refused(
            table, f"the table has virtual columns and a BEFORE UPDATE trigger: {columns}", "drop the trigger"
        )
    if not _sees_triggers(connection, table):
        raise _refused(
            table,
            f"the user may not see whether a table with virtual columns has a BEFORE UPDATE trigger: {columns}",
            "grant TRIGGER on the table to the loader's user (see sql/source/grants.sql)",
        )


def _refused(table: TableName, what: str, cure: str) -> UnsupportedError:
    return UnsupportedError(
        what,
        why=f"{STALE}, if an UPDATE changes several tables",
        hint=f"{cure}, or make the columns STORED, or {table.exclusion}",
        table=table,
    )


def _tables(connection: Connection[Any], name: str) -> list[TableName]:
    return [TableName(str(schema), str(table)) for schema, table in query(connection, sql(name))]


def _sees_triggers(connection: Connection[Any], table: TableName) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql("source/trigger_privileges"), {"schema": table.schema, "table": table.table})
        return bool(cursor.fetchall())
