"""Compiles a table's columns into the program that the row kernel runs: six integers per column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from loader.binlog.values import codepages
from loader.binlog.values.codepoints import FOUR, SHIFTED_THREE, TWO
from loader.binlog.values.decimal_temporal import BYTES_OF_DIGITS
from loader.binlog.values.legacy_temporal import SIZES
from loader.binlog.values.operations import (
    BIT,
    COMPRESSED,
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    ENUM,
    FLOAT,
    HEX,
    HEXED,
    HEXED_KEY,
    INET4,
    INET6,
    INT,
    JSON,
    LATIN1,
    MULTIBYTE,
    OLD,
    OLD_FORMAT,
    PACKED,
    SET,
    SINGLE,
    TIME,
    TIMESTAMP,
    UINT,
    UNICODE,
    UTF8,
    UUID,
    VECTOR,
    YEAR,
)
from loader.binlog.values.vectors import VECTOR_ROOM
from loader.errors import UnsupportedError
from loader.model.charsets import AMBIGUOUS_CHARSETS
from loader.model.ranges import check_ranges
from loader.model.table import ADDRESS_BYTES, Column, TableSchema
from loader.types.catalogue import type_of
from loader.types.column_type import Encoding

_LONGEST_FIXED = 96  # bytes of the longest text of a fixed value
_PLAIN = {Encoding.FLOAT: FLOAT, Encoding.DOUBLE: DOUBLE, Encoding.DATE: DATE, Encoding.YEAR: YEAR}
_FRACTIONAL = {Encoding.DATETIME: DATETIME, Encoding.TIMESTAMP: TIMESTAMP, Encoding.TIME: TIME}
_LABELLED = {Encoding.ENUM: ENUM, Encoding.SET: SET}
_ADDRESSES = {Encoding.UUID: UUID, Encoding.INET4: INET4, Encoding.INET6: INET6}
_UTF8_CHARSETS = {"utf8mb4", "utf8mb3", "utf8"}


@dataclass(frozen=True)
class Program:
    """A table's columns as arrays for the row kernel.

    Attributes:
        schema: the table's schema.
        columns: int64 (columns, 6), fields operations.OP to operations.MOST.
        key: int64, indexes of the key columns; empty for a table without a key.
        label_ends: int64, end of each ENUM or SET label in `labels`; the first entry is 0.
        labels: uint8, the labels of all columns, escaped for the CSV dialect.
        tables: uint16, the code pages of the columns' character sets; see codepages.
    """

    schema: TableSchema
    columns: NDArray[np.int64]
    key: NDArray[np.int64]
    label_ends: NDArray[np.int64]
    labels: NDArray[np.uint8]
    tables: NDArray[np.uint16]


def compile_program(
    schema: TableSchema, prefixes: tuple[int, ...], *, hex_fallback: bool = False, same_keys: bool = False
) -> Program:
    """Compile the program of a table.

    Args:
        schema: the table's schema.
        prefixes: for each column the bytes of the length before a value, 0 for a fixed size. PACKED is added for a
            compressed column, OLD_FORMAT for a time in an old format (values.legacy_temporal).
        hex_fallback: write bytes that are invalid in their character set as hex, see HEXED. Otherwise they are
            an error.
        same_keys: two keys may have the same text, see HEXED_KEY. This is for listings.

    Raises:
        UnsupportedError: a column type or character set is not supported.
        DataError: a size or precision is outside the range of its type.
    """
    check_ranges(schema)
    texts: list[bytes] = []
    first = codepage_offsets(schema.columns, schema.key)
    flags = [hex_flag(column, () if same_keys else schema.key, hex_fallback=hex_fallback) for column in schema.columns]
    rows = [
        _fields(schema, column, prefix, texts, first, flag)
        for column, prefix, flag in zip(schema.columns, prefixes, flags, strict=True)
    ]
    order = {column.name: index for index, column in enumerate(schema.columns)}
    blob = b"".join(texts)
    return Program(
        schema,
        np.array(rows, np.int64).reshape(len(rows), 6),
        np.array([order[name] for name in schema.key], np.int64),
        np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64),
        np.frombuffer(blob or b"\0", np.uint8).copy(),
        codepage_array(tuple(first)),
    )


def codepage_offsets(columns: tuple[Column, ...], key: tuple[str, ...] = ()) -> dict[str, int]:
    """Return the offset of each code page of the columns in their `codepage_array`, by its name.

    `key`: names of the columns of the key.
    """
    names = sorted(
        {
            codepages.page_name(column.charset, in_key=column.name in key)
            for column in columns
            if column.charset in {*codepages.SINGLE, *codepages.WITH_PAIRS}
        }
    )
    ends = np.cumsum([0, *(len(codepages.codepage_of(name)) for name in names)]).tolist()
    return dict(zip(names, ends, strict=False))


@cache
def codepage_array(names: tuple[str, ...]) -> NDArray[np.uint16]:
    """Return the code pages with these names in one array. Programs with the same code pages share it."""
    tables = [codepages.codepage_of(name) for name in names]
    return np.concatenate(tables) if tables else np.zeros(1, np.uint16)


def text_operation(charset: str, first: dict[str, int], *, in_key: bool = False) -> tuple[int, int, int, int] | None:
    """Return operation, two arguments, and the most bytes of text per byte; None for an unsupported character set.

    Args:
        charset: of the column.
        first: see `codepage_offsets`.
        in_key: the column is in the key.
    """
    if charset in _UTF8_CHARSETS:
        return UTF8, 0, 0, 2
    if charset == "latin1":
        return LATIN1, 0, 0, 3
    if charset in codepages.UNICODE:
        return UNICODE, list(codepages.UNICODE).index(charset), 0, 2
    offset = first.get(codepages.page_name(charset, in_key=in_key))
    if offset is None:
        return None
    if charset in codepages.SINGLE:
        return SINGLE, offset, 0, 3
    longest = SHIFTED_THREE if charset in codepages.SHIFTED else FOUR if charset in codepages.FOUR else TWO
    return MULTIBYTE, offset, longest, 3


def hex_flag(column: Column, key: tuple[str, ...], *, hex_fallback: bool) -> int:
    """Return the flag that is added to the operation of a text: HEXED, HEXED_KEY, or 0 without `hex_fallback`.

    `key`: names of the columns of the key.
    """
    if not hex_fallback:
        return 0
    return HEXED_KEY if column.name in key else HEXED


def why_not_text(column: Column, key: tuple[str, ...], *, hex_fallback: bool) -> str:
    """Return why a value may be no text of a column although it is one on the server; empty if none may be.

    `key`: names of the columns of the key.
    """
    if column.name not in key or type_of(column).encoding is not Encoding.TEXT:
        return ""
    if hex_fallback:
        return (
            r"a key must not have a text such as \x61a1: with undecodable = hex, invalid bytes are staged like this,"
            " and they are another key on the server"
        )
    if column.charset not in AMBIGUOUS_CHARSETS:
        return ""
    return (
        f"{column.charset} has several byte sequences for some characters; only one of them is read in a key, because"
        " the others are other keys on the server, but the same text"
    )


def _fields(
    schema: TableSchema, column: Column, prefix: int, texts: list[bytes], first: dict[str, int], flag: int
) -> list[int]:
    known = type_of(column, schema.name)
    encoding, size = known.encoding, known.log_bytes
    if encoding is Encoding.INTEGER:
        return [UINT if column.unsigned else INT, 0, size, 0, 0, _LONGEST_FIXED]
    if encoding in _PLAIN:
        return [_PLAIN[encoding], 0, size, 0, 0, _LONGEST_FIXED]
    if encoding is Encoding.DECIMAL:
        return [DECIMAL, 0, _decimal_bytes(column), column.size, column.scale, _LONGEST_FIXED]
    if prefix == OLD_FORMAT:
        kind = column.type
        return [OLD, 0, SIZES[kind][column.size], column.size, list(SIZES).index(kind), _LONGEST_FIXED]
    if encoding in _FRACTIONAL:
        return [_FRACTIONAL[encoding], 0, size + (column.size + 1) // 2, column.size, 0, _LONGEST_FIXED]
    if encoding is Encoding.BIT:
        return [BIT, 0, (column.size + 7) // 8, 0, 0, _LONGEST_FIXED]
    if encoding in _LABELLED:
        return _label_fields(column, _LABELLED[encoding], texts)
    if encoding is Encoding.JSON:
        return [JSON, prefix, 0, 0, 0, 0]
    if prefix > PACKED:
        op, _, _, x, y, _ = _variable_fields(schema, column, prefix - PACKED, first, flag)
        return [COMPRESSED, prefix - PACKED, op, x, y, 0]
    return _variable_fields(schema, column, prefix, first, flag)


def _decimal_bytes(column: Column) -> int:
    parts = (column.size - column.scale, column.scale)
    return sum(digits // 9 * 4 + int(BYTES_OF_DIGITS[digits % 9]) for digits in parts)


def _label_fields(column: Column, operation: int, texts: list[bytes]) -> list[int]:
    first = len(texts)
    texts += [_escape(label) for label in column.labels]
    most = sum(len(text) + 1 for text in texts[first:]) + 3
    count = len(column.labels)
    size = label_bytes(operation == SET, count)
    return [operation, 0, size, first, count, most]


def label_bytes(many: bool, count: int) -> int:
    """Return the bytes of an ENUM value with `count` labels, or (`many`) of a SET value."""
    if not many:
        return 1 if count < 256 else 2
    size = (count + 7) // 8
    return 8 if size > 4 else size


def _variable_fields(schema: TableSchema, column: Column, prefix: int, first: dict[str, int], flag: int) -> list[int]:
    encoding = type_of(column, schema.name).encoding
    if encoding is Encoding.BYTES:
        return [HEX, prefix, column.size, column.size, 0, 2]
    if encoding in _ADDRESSES:
        return [_ADDRESSES[encoding], prefix, ADDRESS_BYTES[column.type], 0, 0, 4]
    if encoding is Encoding.VECTOR:
        return [VECTOR, prefix, 0, 0, 0, VECTOR_ROOM]
    in_key = column.name in schema.key
    operation = text_operation(column.charset, first, in_key=in_key) if encoding is Encoding.TEXT else None
    if operation:
        op, x, y, most = operation
        return [op + flag, prefix, 0, x, y, most]
    raise UnsupportedError(
        f"column type {column} with character set {column.charset or 'unknown'} is not supported by this version",
        hint=f"{schema.name.exclusion}, or convert the column to utf8mb4",
        table=schema.name,
        column=column.name,
    )


def _escape(label: str) -> bytes:
    text = label.replace("\\", "\\\\").replace('"', '""')
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0").encode()
