"""Writes one value of a row image as one field of a staged line, by the column's program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.addresses import put_inet4, put_inet6, put_uuid
from loader.binlog.values.binary_json import put_json
from loader.binlog.values.codepoints import Codes
from loader.binlog.values.compressed_columns import put_packed
from loader.binlog.values.decimal_temporal import put_datetime2, put_decimal, put_old_date, put_time2, put_timestamp2
from loader.binlog.values.digits import big, little, put_padded, put_signed, put_unsigned, signed
from loader.binlog.values.floats import put_double, put_float
from loader.binlog.values.legacy_temporal import put_old_time
from loader.binlog.values.operations import (
    BIT,
    COMPRESSED,
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    ENUM,
    FLOAT,
    INET4,
    INET6,
    INT,
    JSON,
    OLD,
    SET,
    TIME,
    TIMESTAMP,
    UINT,
    UTF8,
    UUID,
    VECTOR,
    YEAR,
)
from loader.binlog.values.quoted_text import QUOTE, put_text
from loader.binlog.values.strings import put_string
from loader.binlog.values.vectors import put_vector

_COMMA = np.uint8(44)
Program = NDArray[np.int64]


@part
def _put_label(out: Bytes, at: int, index: int, label_ends: Program, labels: Bytes) -> int:
    for i in range(label_ends[index], label_ends[index + 1]):
        out[at] = labels[i]
        at += 1
    return at


@part
def _put_enum(out: Bytes, at: int, value: np.int64, first: int, count: int, label_ends: Program, labels: Bytes) -> int:
    """Write the label. Index 0 is the empty string that the server stores for an invalid value."""
    if value > count:
        return BAD
    out[at] = QUOTE
    at += 1
    if value:
        at = _put_label(out, at, first + value - 1, label_ends, labels)
    out[at] = QUOTE
    return at + 1


@part
def _put_set(out: Bytes, at: int, value: np.uint64, first: int, count: int, label_ends: Program, labels: Bytes) -> int:
    """Write the labels with commas, as `Field_set::val_str` does: no comma while the text is empty (an empty label)."""
    if count < 64 and value >> np.uint64(count):
        return BAD
    out[at] = QUOTE
    at += 1
    begin = at
    for i in range(count):
        if value & (np.uint64(1) << np.uint64(i)):
            if at > begin:
                out[at] = _COMMA
                at += 1
            at = _put_label(out, at, first + i, label_ends, labels)
    out[at] = QUOTE
    return at + 1


@part
def _put_year(out: Bytes, at: int, byte: np.uint8) -> int:
    """Write a YEAR. 0 is the year 0000; other values count from 1900."""
    return put_padded(out, at, np.int64(byte) + 1900 if byte else np.int64(0), 4)


@part
def put_value(
    out: Bytes,
    at: int,
    limit: int,
    buf: Bytes,
    start: int,
    end: int,
    op: int,
    size: int,
    x: int,
    y: int,
    label_ends: Program,
    labels: Bytes,
    tables: Codes,
    stack: Program,
) -> int:
    """Write the field of the value in buf[start:end]; return BAD if it is invalid, NO_ROOM for JSON beyond `limit`."""
    if op == INT:
        return put_signed(out, at, signed(little(buf, start, size), size))
    if op == UINT:
        return put_unsigned(out, at, little(buf, start, size))
    if op == UTF8:
        return put_text(out, at, buf, start, end)
    if op == DECIMAL:
        return put_decimal(out, at, buf, start, x, y)
    if op == DATETIME:
        return put_datetime2(out, at, buf, start, x)
    if op == TIMESTAMP:
        return put_timestamp2(out, at, buf, start, x)
    if op == ENUM:
        return _put_enum(out, at, np.int64(little(buf, start, size)), x, y, label_ends, labels)
    if op == DOUBLE:
        return put_double(out, at, little(buf, start, 8))
    if op == FLOAT:
        return put_float(out, at, little(buf, start, 4))
    if op == DATE:
        return put_old_date(out, at, buf, start)
    if op == TIME:
        return put_time2(out, at, buf, start, x)
    if op == YEAR:
        return _put_year(out, at, buf[start])
    if op == BIT:
        return put_unsigned(out, at, big(buf, start, size))
    if op == SET:
        return _put_set(out, at, little(buf, start, size), x, y, label_ends, labels)
    if op == JSON:
        return put_json(out, at, limit, buf, start, end, stack)
    if op == VECTOR:
        return put_vector(out, at, buf, start, end)
    if op == COMPRESSED:
        return put_packed(out, at, buf, start, end, size, x, y, tables, stack)
    if op == OLD:
        return put_old_time(out, at, buf, start, size, x, y)
    if op == UUID:
        return put_uuid(out, at, buf, start, end)
    if op == INET4:
        return put_inet4(out, at, buf, start, end)
    if op == INET6:
        return put_inet6(out, at, buf, start, end)
    return put_string(out, at, buf, start, end, op, x, y, tables)
