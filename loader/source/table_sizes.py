"""Estimated sizes of tables, from the statistics of their engine."""

from __future__ import annotations

from typing import Any, NamedTuple

from pymysql.connections import Connection

from loader.model.table import TableName
from loader.resources import sql
from loader.source.server_facts import query, read_identity


class TableSize(NamedTuple):
    """Estimated rows and bytes of data of a table."""

    rows: int
    bytes: int


def read_sizes(connection: Connection[Any]) -> dict[TableName, TableSize]:
    """Return the sizes of all tables that the user may see, without the server's own."""
    _read_current_statistics(connection)
    rows = query(connection, sql("source/table_sizes"))
    return {TableName(str(schema), str(table)): _size(count, size) for schema, table, count, size in rows}


def read_size(connection: Connection[Any], table: TableName) -> TableSize:
    """Return the size of a table; 0 rows if the server does not know it."""
    _read_current_statistics(connection)
    with connection.cursor() as cursor:
        cursor.execute(sql("source/table_size"), (table.schema, table.table))
        # MariaDB also finds names that differ by case.
        sizes = [_size(count, size) for name, count, size in cursor.fetchall() if name == table.table]
    return sizes[0] if sizes else TableSize(0, 0)


def _size(rows: int | None, size: int | None) -> TableSize:
    return TableSize(int(rows or 0), int(size or 0))


def _read_current_statistics(connection: Connection[Any]) -> None:
    if read_identity(connection).kind == "mysql":
        query(connection, "SET SESSION information_schema_stats_expiry = 0")  # otherwise they may be a day old
