"""Rows of a table as PyMySQL reads them from the server and PyIceberg from the warehouse, in values that compare."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pymysql
from pymysql import converters

from infra.servers import Server
from tests.chaos.access.columns import BINARIES, INTEGERS, Column, quoted

Canonical = Callable[[Any], Any]


def server_rows(server: Server, database: str, table: str, columns: list[Column]) -> Iterator[tuple[Any, ...]]:
    """Read the rows of a table of the server, as values that compare with those of `warehouse_rows`."""
    connection = pymysql.connect(
        host=server.host, port=server.port, user=server.user, charset="utf8mb4", conv=converters.encoders, use_unicode=False,
        init_command="SET time_zone = '+00:00'",
    )  # fmt: skip
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(map(_expression, columns))} FROM {quoted(database)}.{quoted(table)}")
        makers = [_from_server(one) for one in columns]
        for row in cursor.fetchall():
            yield tuple(None if value is None else make(value) for make, value in zip(makers, row, strict=True))


def _expression(column: Column) -> str:
    if column.type == "bit":
        return f"{column.quoted} + 0"
    if column.type == "float":
        return f"CAST({column.quoted} AS DOUBLE)"  # a FLOAT alone is printed with six digits
    return column.quoted


def _from_server(column: Column) -> Canonical:
    kind = column.type
    if kind in INTEGERS or kind in {"bit", "year"}:
        return int
    if kind == "decimal":
        return lambda value: Decimal(value.decode())
    if kind in {"float", "double"}:
        return lambda value: repr(float(value))
    if kind in BINARIES or kind in {"point", "geometry", "vector"}:
        return bytes
    if kind in {"datetime", "timestamp"}:
        return _with_microseconds
    if kind == "date":
        return lambda value: None if _is_invalid(value) else value.decode()
    return lambda value: value.decode("utf-8")


def _is_invalid(value: bytes) -> bool:
    """Whether a date such as 0000-00-00 is on no calendar: the configuration makes it NULL in the warehouse."""
    return value.startswith(b"0000") or b"-00" in value[:10]


def _with_microseconds(value: bytes) -> str | None:
    if _is_invalid(value):
        return None
    whole, _, fraction = value.decode().partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}"


def warehouse_rows(arrow: Any, columns: list[Column]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table of the warehouse in the columns that it has on the server."""
    values = []
    for one in columns:
        make = _from_warehouse(one)
        values.append([None if value is None else _made(make, value) for value in arrow.column(one.name).to_pylist()])
    return zip(*values, strict=True)


def _made(make: Canonical, value: Any) -> Any:
    """A value in the form of the server's; as it is if the column had another type when its row was deleted."""
    try:
        return make(value)
    except (TypeError, ValueError, AttributeError, InvalidOperation):
        return value


def _from_warehouse(column: Column) -> Canonical:
    kind = column.type
    if kind in INTEGERS or kind in {"bit", "year"}:
        return int
    if kind == "decimal":
        return lambda value: Decimal(str(value))
    if kind in {"float", "double"}:
        return lambda value: repr(float(value))
    if kind in BINARIES or kind in {"point", "geometry"}:
        return bytes
    if kind in {"datetime", "timestamp"}:
        return _moment
    if kind == "vector":
        return lambda value: array("f", json.loads(value)).tobytes()
    return str


def _moment(value: datetime) -> str:
    if value.tzinfo:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(sep=" ", timespec="microseconds")
