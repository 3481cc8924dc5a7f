"""The one table of types: MySQL and MariaDB type -> form of its staged text -> Spark and Iceberg type.

Sources: the server's manual, "Data Types" and "LOAD DATA"; the Iceberg specification, "Schemas and Data Types".
"""

from __future__ import annotations

import re
from enum import Enum

from loader.errors import UnsupportedError
from loader.model.table import ADDRESS_BYTES, Column, TableName


class Form(Enum):
    """How a value is written in a staged file."""

    NUMBER = "number"  # bare decimal text
    TEXT = "text"  # quoted, escaped, UTF-8
    HEX = "hex"  # quoted lower-case hex of the bytes
    TEMPORAL = "temporal"  # bare, as the server writes it; TIMESTAMP in UTC


_INTEGERS = {"tinyint": "int", "smallint": "int", "mediumint": "int", "int": "int", "bigint": "bigint"}
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "vector"}
_TEXTS |= set(ADDRESS_BYTES)
_BINARIES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry"}
_TEMPORALS = {"date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp", "time": "string"}

_DECIMAL = re.compile(r"decimal\((?P<size>\d+),\s*(?P<scale>\d+)\)")
_MAX_DECIMAL = 38  # of Spark and Iceberg; MySQL has 65


def form(column: Column) -> Form:
    """The form in which values of the column are staged.

    Raises:
        UnsupportedError: a type that the loader does not cover.
    """
    if column.type in _TEXTS:
        return Form.TEXT
    if column.type in _BINARIES:
        return Form.HEX
    if column.type in _TEMPORALS:
        return Form.TEMPORAL
    if column.type in _INTEGERS or column.type in {"decimal", "float", "double", "bit", "year"}:
        return Form.NUMBER
    raise UnsupportedError(
        f"type {column} is not covered",
        hint="exclude the table from the captured tables",
        column=column.name,
    )


def spark_type(column: Column, table: TableName | None = None) -> str:
    """The column's type in Spark SQL and so in Iceberg: the narrowest that holds every value.

    Raises:
        UnsupportedError: a type that the loader does not cover.
    """
    kind = column.type
    if kind in _INTEGERS:
        return _integer(column)
    if kind == "decimal":
        fits = column.size <= _MAX_DECIMAL
        return f"decimal({column.size},{column.scale})" if fits else "string"
    if kind in {"float", "double"}:
        return kind
    if kind == "year":
        return "int"
    if kind == "bit":
        return "bigint" if column.size < 64 else "decimal(20,0)"
    if kind in _TEMPORALS:
        return _TEMPORALS[kind]
    if kind in _TEXTS:
        return "string"
    if kind in _BINARIES:
        return "binary"
    raise UnsupportedError(
        f"type {column} is not covered",
        hint="exclude the table from the captured tables",
        table=table,
        column=column.name,
    )


def _integer(column: Column) -> str:
    if column.unsigned and column.type == "bigint":
        return "decimal(20,0)"
    if column.unsigned and column.type == "int":
        return "bigint"
    return _INTEGERS[column.type]


def widened_type(one: str, other: str) -> str | None:
    """The Spark type to which Iceberg widens columns of both types without a change of their values, if there is one.

    Iceberg specification, "Schema Evolution", format version 2.
    """
    if one == other:
        return one
    for narrow, wide in (("int", "bigint"), ("float", "double")):
        if {one, other} == {narrow, wide}:
            return wide
    sizes = [_DECIMAL.fullmatch(kind) for kind in (one, other)]
    if sizes[0] and sizes[1] and sizes[0]["scale"] == sizes[1]["scale"]:
        return max(one, other, key=lambda kind: int(kind[len("decimal(") :].partition(",")[0]))
    return None
