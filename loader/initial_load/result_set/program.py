"""Compiles the columns of a table and of a result set into the program of the chunk kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pymysql.protocol import FieldDescriptorPacket

from loader.binlog.program import codepage_array, codepage_offsets, hex_flag, text_operation
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
from loader.types.catalogue import type_of
from loader.types.column_type import Encoding

_FIXED = {Encoding.FLOAT: FLOAT, Encoding.DOUBLE: DOUBLE, Encoding.YEAR: YEAR}
_TEMPORAL = {
    Encoding.DATE: DATE,
    Encoding.DATETIME: DATETIME,
    Encoding.TIMESTAMP: DATETIME,
    Encoding.TIME: TIME,
}
_STRINGS = {249, 250, 251, 252, 253, 254}
_UNSIGNED = 32
_LABELLED = {Encoding.ENUM: 256, Encoding.SET: 2048}  # flags of a column that is sent as a string
_BINARY = 63
_SENT_AS_TEXT = {Encoding.TEXT, Encoding.JSON, Encoding.UUID, Encoding.INET4, Encoding.INET6}
_TEXTS = {log.UTF8: TEXT, log.LATIN1: LATIN1, log.SINGLE: SINGLE, log.MULTIBYTE: MULTIBYTE, log.UNICODE: UNICODE}


@dataclass(frozen=True)
class Program:
    """The input of the kernel that describes the columns.

    Attributes:
        columns: int64, shape (columns, 5): the kernel's fields of each column.
        tables: the decoding tables of the columns' character sets; see codepages.
    """

    columns: NDArray[np.int64]
    tables: NDArray[np.uint16]


def compile_program(
    schema: TableSchema, described: Sequence[FieldDescriptorPacket], *, hex_fallback: bool = False
) -> Program:
    """Compile the program for binary result rows of a table, with text in the character sets of its columns.

    `hex_fallback`: see HEXED.

    Raises:
        DataError: the server describes other columns than the schema has, because the table was altered. Or no table
            can have this schema.
    """
    check_ranges(schema)
    if len(described) != len(schema.columns):
        raise _altered(schema, "another number of columns")
    first = codepage_offsets(schema.columns, schema.key)
    rows = []
    for column, field in zip(schema.columns, described, strict=True):
        operation, size, fits = _program(column, field)
        if not fits:
            raise _altered(schema, f"{field.name} has type {field.type_code} of the protocol now", column)
        rows.append((operation, size, 0, 0, VECTOR_ROOM if operation == VECTOR else 2))
        if operation == TEXT and column.charset not in {"", "binary"}:
            rows[-1] = _text(schema, column, field, first, hex_fallback)
    return Program(np.array(rows, np.int64).reshape(len(rows), 5), codepage_array(tuple(first)))


def _text(
    schema: TableSchema, column: Column, field: FieldDescriptorPacket, first: dict[str, int], hex_fallback: bool
) -> tuple[int, int, int, int, int]:
    """Return the fields of a text, which is sent in the character set of its column."""
    found = charset_of(field.charsetnr)
    known = text_operation(column.charset, first, in_key=column.name in schema.key)
    if found != column.charset or known is None:
        raise _altered(schema, f"{field.name} has character set {found} now", column)
    operation, x, y, most = known
    return _TEXTS[operation] + hex_flag(column, schema.key, hex_fallback=hex_fallback), 0, x, y, most


def _program(column: Column, field: FieldDescriptorPacket) -> tuple[int, int, bool]:
    """Return operation, size, and whether the result has the column as in the schema."""
    known, code = type_of(column), field.type_code
    encoding, same = known.encoding, code == known.result_type
    if encoding is Encoding.INTEGER:
        unsigned = bool(field.flags & _UNSIGNED)
        return UINT if unsigned else INT, known.result_bytes, same and unsigned == column.unsigned
    if encoding in _FIXED:
        return _FIXED[encoding], known.result_bytes, same
    if encoding in _TEMPORAL:
        return _TEMPORAL[encoding], column.size, same and field.scale == column.size
    if encoding is Encoding.DECIMAL:
        return DECIMAL, 0, same and field.scale == column.scale
    if encoding is Encoding.BIT:
        return BIT, 0, same and field.length == column.size
    if encoding in _LABELLED:
        return TEXT, 0, code in _STRINGS and bool(field.flags & _LABELLED[encoding])
    if encoding is Encoding.VECTOR:
        return VECTOR, 0, same or (code in _STRINGS and field.charsetnr == _BINARY)
    binary = encoding is Encoding.BYTES
    if not binary and encoding not in _SENT_AS_TEXT:
        raise NotImplementedError(f"the chunk kernel has no operation for {encoding}")
    if known.result_type:
        return HEX if binary else TEXT, 0, same
    plain = code in _STRINGS and not field.flags & sum(_LABELLED.values())
    return HEX if binary else TEXT, 0, plain and (field.charsetnr == _BINARY) == binary


def _altered(schema: TableSchema, why: str, column: Column | None = None) -> DataError:
    return DataError(
        "the table was altered since its load was planned",
        why=why,
        hint=schema.name.load_again,
        table=schema.name,
        column=column.name if column else None,
    )
