"""Virtual columns whose values depend on the time zone or the SQL modes of the session that computes them.

The log has the value of the session that wrote the row. A load would read the value of its own session, which is in UTC
and has no SQL modes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pymysql.connections import Connection

from loader.errors import UnsupportedError
from loader.model.table import TableName, TableSchema
from loader.resources import sql
from loader.source.server_facts import query, read_identity
from loader.source.update_triggers import check_update_triggers
from loader.types.catalogue import names_of
from loader.types.column_type import Encoding

_NAME = re.compile(r"`((?:[^`]|``)+)`")
_ZONED = re.compile(r"\b(?:from_unixtime|unix_timestamp)\(", re.IGNORECASE)
_TEMPORAL = re.compile(
    r"\bas (?:date|time)|\binterval\b|(?:date|time|year|quarter|month|week|day|hour|minute|second)\w*\(", re.IGNORECASE
)
"""Matches expressions that may convert a text to a time, or round a time."""
_UTC = {"UTC", "GMT", "Etc/UTC", "Etc/GMT", "+00:00"}
_TIMES = names_of(Encoding.DATE, Encoding.TIME, Encoding.DATETIME, Encoding.TIMESTAMP)
_TEXTS = names_of(Encoding.TEXT, Encoding.JSON)
_ROUNDING = {"TIME_TRUNCATE_FRACTIONAL", "TIME_ROUND_FRACTIONAL"}  # MySQL, MariaDB


class VirtualColumn(NamedTuple):
    """The type and the expression of a virtual column."""

    type: str
    expression: str

    @property
    def is_temporal(self) -> bool:
        """Whether its value may come from a text that is converted to a time, or from a time that is rounded."""
        return self.type in _TIMES or bool(_TEMPORAL.search(self.expression))


class SessionDefaults(NamedTuple):
    """The time zone and the SQL modes of sessions that set neither."""

    time_zone: str
    sql_modes: frozenset[str]


def check_virtual_columns(connection: Connection[Any], schema: TableSchema) -> None:
    """Check that a load reads the values of virtual columns that the log has.

    Sessions that set another time zone or other SQL modes than the server's are not noticed.

    Raises:
        UnsupportedError: a column depends on the time zone, and that of the server is not UTC. Or a column depends on
            SQL modes of the server, or has an outdated value in the log of MariaDB: see loader.source.update_triggers.
    """
    virtual = _read_virtual(connection, schema.name)
    if not virtual:
        return
    check_update_triggers(connection, schema.name, virtual)
    defaults = _read_defaults(connection)
    expressions = {name: column.expression for name, column in virtual.items()}
    timestamps = {column.name for column in schema.columns if column.type == "timestamp"}
    if defaults.time_zone not in _UTC and (zoned := zoned_columns(expressions, timestamps)):
        raise _refused(schema.name, "virtual columns depend on the time zone of the session", zoned)
    if dependent := mode_columns(schema, virtual, defaults.sql_modes):
        raise _refused(schema.name, "virtual columns depend on SQL modes of the session", dependent)


def find_offset_texts(connection: Connection[Any], schema: TableSchema) -> tuple[str, ...]:
    """Return the columns from whose text MySQL may compute a time, if the time zone of the server is not UTC.

    MySQL converts a text with an offset, such as `2024-05-01T10:00:00+02:00`, to the time zone of the session.
    """
    virtual = _read_virtual(connection, schema.name)
    if not virtual or read_identity(connection).kind == "mariadb" or _read_defaults(connection).time_zone in _UTC:
        return ()
    return offset_texts(schema, virtual)


def zoned_columns(virtual: Mapping[str, str], timestamps: set[str]) -> set[str]:
    """Return the virtual columns, given with their expressions, whose values depend on a time zone."""
    return _dependents(virtual, timestamps, {name for name, one in virtual.items() if _ZONED.search(one)})


def mode_columns(schema: TableSchema, virtual: Mapping[str, VirtualColumn], modes: frozenset[str]) -> set[str]:
    """Return the virtual columns whose values depend on one of these SQL modes."""
    expressions = {name: column.expression for name, column in virtual.items()}
    rounded = {name for name, column in virtual.items() if column.is_temporal} if modes & _ROUNDING else set()
    padded = {column.name for column in schema.columns if column.type == "char"}
    return _dependents(expressions, padded if "PAD_CHAR_TO_FULL_LENGTH" in modes else set(), rounded)


def offset_texts(schema: TableSchema, virtual: Mapping[str, VirtualColumn]) -> tuple[str, ...]:
    """Return the text columns that virtual columns may convert to a time, directly or through others."""
    used = {name for column in virtual.values() if column.is_temporal for name in _names(column.expression)}
    while (
        more := {
            one for name, column in virtual.items() if name.casefold() in used for one in _names(column.expression)
        }
        - used
    ):
        used |= more
    texts = (column.name for column in schema.columns if column.type in _TEXTS and column.name not in virtual)
    return tuple(name for name in texts if name.casefold() in used)


def _dependents(virtual: Mapping[str, str], bases: set[str], found: set[str]) -> set[str]:
    """Return `found` and the virtual columns that name one of the bases or of `found`, directly or through others."""
    while more := {
        name
        for name, expression in virtual.items()
        if name not in found and _names(expression) & {one.casefold() for one in bases | found}
    }:
        found = found | more
    return found


def _names(expression: str) -> set[str]:
    return {name.replace("``", "`").casefold() for name in _NAME.findall(expression)}


def _read_virtual(connection: Connection[Any], table: TableName) -> dict[str, VirtualColumn]:
    with connection.cursor() as cursor:
        cursor.execute(sql("source/virtual_columns"), (table.schema, table.table))
        return {
            str(name): VirtualColumn(str(kind).lower(), str(expression)) for name, kind, expression in cursor.fetchall()
        }


def _read_defaults(connection: Connection[Any]) -> SessionDefaults:
    ((zone, modes),) = query(connection, sql("source/session_defaults"))
    return SessionDefaults(str(zone), frozenset(str(modes).split(",")))


def _refused(table: TableName, what: str, columns: set[str]) -> UnsupportedError:
    return UnsupportedError(
        f"{what}: {', '.join(sorted(columns))}",
        why="the log has the values of the sessions that wrote the rows, and a load reads those of its own, in UTC and"
        " without SQL modes",
        hint=f"make them STORED, or {table.exclusion}",
        table=table,
    )
