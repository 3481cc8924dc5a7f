"""Virtual columns whose values depend on the time zone of the session that computes them.

The log has the value of the session that wrote the row. A load would read the value of its own session, in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pymysql.connections import Connection

from loader.errors import UnsupportedError
from loader.model.table import TableName, TableSchema
from loader.resources import sql

_NAME = re.compile(r"`((?:[^`]|``)+)`")
_ZONED = re.compile(r"\b(?:from_unixtime|unix_timestamp)\(", re.IGNORECASE)


def check_virtual_columns(connection: Connection[Any], schema: TableSchema) -> None:
    """Check that a load reads the values of virtual columns that the log has.

    Sessions that set another time zone than the server's are not noticed.

    Raises:
        UnsupportedError: a column depends on the time zone, and that of the server is not UTC.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql("source/zoned_columns"), (schema.name.schema, schema.name.table))
        virtual = {str(name): str(expression) for name, expression in cursor.fetchall()}
    timestamps = {column.name for column in schema.columns if column.type == "timestamp"}
    if zoned := sorted(zoned_columns(virtual, timestamps)):
        raise _zoned_error(schema.name, zoned)


def zoned_columns(virtual: Mapping[str, str], timestamps: set[str]) -> set[str]:
    """Return the virtual columns, given with their expressions, whose values depend on a time zone."""
    found = {name for name, expression in virtual.items() if _ZONED.search(expression)}
    while more := {
        name
        for name, expression in virtual.items()
        if name not in found and _names(expression) & {one.casefold() for one in timestamps | found}
    }:
        found |= more
    return found


def _names(expression: str) -> set[str]:
    return {name.replace("``", "`").casefold() for name in _NAME.findall(expression)}


def _zoned_error(table: TableName, columns: list[str]) -> UnsupportedError:
    return UnsupportedError(
        f"virtual columns depend on the time zone of the session: {', '.join(columns)}",
        why="the log has the values of the sessions that wrote the rows, and a load reads those of its own, in UTC",
        hint=f"make them STORED, or {table.exclusion}",
        table=table,
    )
