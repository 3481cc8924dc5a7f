"""From a table's columns and a result set's own description of them to what the chunk kernel runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pymysql.protocol import FieldDescriptorPacket

from loader.binlog.program import codepage_array, codepage_offsets, text_operation
from loader.binlog.values import operations as log
from loader.binlog.values.charsets import charset_of
from loader.binlog.values.vectors import VECTOR_ROOM
from loader.errors import DataError
from loader.initial_load.result_set.kernel import (
    BIT,
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    FLOAT,
    HEX,
    INT,
    LATIN1,
    MULTIBYTE,
    SINGLE,
    TEXT,
    TIME,
    UINT,
    UNICODE,
    VECTOR,
    YEAR,
)
from loader.model.ranges import check_ranges
from loader.model.table import Column, TableSchema

_INTEGERS = {"tinyint": (1, 1), "smallint": (2, 2), "mediumint": (9, 4), "int": (3, 4), "bigint": (8, 8)}
_FIXED = {"float": (4, FLOAT, 4), "double": (5, DOUBLE, 8), "year": (13, YEAR, 2)}
_TEMPORAL = {"date": (10, DATE), "datetime": (12, DATETIME), "timestamp": (7, DATETIME), "time": (11, TIME)}
_STRINGS = {249, 250, 251, 252, 253, 254}
_UNSIGNED = 32
_LABELLED = {"enum": 256, "set": 2048}  # flags of a column that is sent as a string
_BINARY = 63
_TEXTS = {log.UTF8: TEXT, log.LATIN1: LATIN1, log.SINGLE: SINGLE, log.MULTIBYTE: MULTIBYTE, log.UNICODE: UNICODE}


@dataclass(frozen=True)
class Program:
    """What the kernel needs to know of the columns.

    Attributes:
        columns: int64 (columns, 5), the fields of the kernel's columns.
        tables: the tables of the columns' character sets; see codepages.
    """

    columns: NDArray[np.int64]
    tables: NDArray[np.uint16]


def compile_program(
    schema: TableSchema, described: Sequence[FieldDescriptorPacket], *, hex_fallback: bool = False
) -> Program:
    """Compile the program for binary result rows of a table, with text in the character sets of its columns.

    `hex_fallback`: see HEXED.

    Raises:
        DataError: the server describes other columns than the schema has: the table was altered. Or the schema is not
            one that a table can have.
    """
    check_ranges(schema)
    if len(described) != len(schema.columns):
        raise _altered(schema, "another number of columns")
    first = codepage_offsets(schema.columns)
    rows = []
    for column, field in zip(schema.columns, described, strict=True):
        operation, size, fits = _program(column, field)
        if not fits:
            raise _altered(schema, f"{field.name} has type {field.type_code} of the protocol now", column)
        rows.append((VECTOR, 0, 0, 0, VECTOR_ROOM) if column.type == "vector" else (operation, size, 0, 0, 2))
        if operation == TEXT and column.charset not in {"", "binary"}:
            rows[-1] = _text(schema, column, field, first, hex_fallback)
    return Program(np.array(rows, np.int64).reshape(len(rows), 5), codepage_array(tuple(first)))


def _text(
    schema: TableSchema, column: Column, field: FieldDescriptorPacket, first: dict[str, int], hex_fallback: bool
) -> tuple[int, int, int, int, int]:
    """The fields of a text, which comes in the column's own character set."""
    found = charset_of(field.charsetnr)
    known = text_operation(column.charset, first)
    if found != column.charset or known is None:
        raise _altered(schema, f"{field.name} has character set {found} now", column)
    operation, x, y, most = known
    return _TEXTS[operation] + (log.HEXED if hex_fallback else 0), 0, x, y, most


def _program(column: Column, field: FieldDescriptorPacket) -> tuple[int, int, bool]:
    """Operation, size, and whether the result has the column as the schema does."""
    kind, code = column.type, field.type_code
    if kind in _INTEGERS:
        expected, size = _INTEGERS[kind]
        unsigned = bool(field.flags & _UNSIGNED)
        return UINT if unsigned else INT, size, code == expected and unsigned == column.unsigned
    if kind in _FIXED:
        expected, operation, size = _FIXED[kind]
        return operation, size, code == expected
    if kind in _TEMPORAL:
        expected, operation = _TEMPORAL[kind]
        return operation, column.size, code == expected and field.scale == column.size
    if kind == "decimal":
        return DECIMAL, 0, code == 246 and field.scale == column.scale
    if kind == "bit":
        return BIT, 0, code == 16 and field.length == column.size
    if kind == "json":
        return TEXT, 0, code == 245
    if kind in _LABELLED:
        return TEXT, 0, code in _STRINGS and bool(field.flags & _LABELLED[kind])
    if kind == "geometry":
        return HEX, 0, code == 255
    if kind == "vector":
        return HEX, 0, code == 242 or (code in _STRINGS and field.charsetnr == _BINARY)
    binary = kind.endswith(("blob", "binary"))
    plain = code in _STRINGS and not field.flags & sum(_LABELLED.values())
    return HEX if binary else TEXT, 0, plain and (field.charsetnr == _BINARY) == binary


def _altered(schema: TableSchema, why: str, column: Column | None = None) -> DataError:
    return DataError(
        "the table was altered since its load was planned",
        why=why,
        hint="start a new load of the table",
        table=schema.name,
        column=column.name if column else None,
    )
