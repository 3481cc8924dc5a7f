"""Writes the server's binary JSON as the text that the server shows, into a quoted field.

Format: the server's `json_binary.h`. Text: `Json_wrapper::to_string`. Values are found by their offsets, never read in
sequence: a partial update leaves holes. A stack as deep as the server's limit follows the nesting.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.decimal_temporal import decimal_size, put_decimal
from loader.binlog.values.digits import (
    little,
    put_clock,
    put_date,
    put_fraction,
    put_hex,
    put_signed,
    put_unsigned,
    signed,
)
from loader.binlog.values.floats import put_double
from loader.binlog.values.quoted_text import BACKSLASH, QUOTE, put_escaped, put_utf8

NO_ROOM = -2
"""Returned instead of a position if the text does not fit. The caller discards the part that is already written."""

SLACK = 512
"""Bytes of output that must follow the limit: room for the closing brackets of the deepest document and one scalar."""

_BASE, _LEFT, _ENTRY, _KEY, _WIDE = range(5)
"""Fields of an open container: position from which its offsets count; members left; next value entry; next key entry (0
in arrays); bytes of an offset."""

_DEPTH = 101  # JSON_DOCUMENT_MAX_DEPTH is 100
STACK = (_DEPTH, 8)
_ROOM = 96  # bytes of the longest scalar that is not a string
_DIGITS = 81  # most digits of a DECIMAL in JSON: digits before the point count in groups of nine, so more than 65
_COMMA = np.uint8(44)
_COLON = np.uint8(58)
_SPACE = np.uint8(32)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8).copy()
_LITERALS = np.frombuffer(b"null true false", np.uint8).copy()
_BASE64_LINE = 57  # bytes per line: the server breaks lines after 76 characters
_BASE64_WORD = np.frombuffer(b"base64:type", np.uint8).copy()
_SHORT = np.zeros(256, np.uint8)
_SHORT[[8, 9, 10, 12, 13, 34, 92]] = np.frombuffer(b'btnfr"\\', np.uint8)


@part
def _put_quote(out: Bytes, at: int) -> int:
    out[at] = QUOTE
    out[at + 1] = QUOTE
    return at + 2


@part
def _put_backslash(out: Bytes, at: int) -> int:
    out[at] = BACKSLASH
    out[at + 1] = BACKSLASH
    return at + 2


@part
def _put_string(out: Bytes, at: int, limit: int, buf: Bytes, pos: int, end: int) -> int:
    """Write a JSON string with JSON's escapes, and escape the result for the CSV dialect."""
    at = _put_quote(out, at)
    while pos < end:
        if at + 16 > limit:
            return NO_ROOM
        byte = buf[pos]
        if _SHORT[byte]:
            at = _put_backslash(out, at)
            at = put_escaped(out, at, _SHORT[byte])
            pos += 1
        elif byte < 32:
            at = _put_backslash(out, at)
            out[at] = np.uint8(117)
            out[at + 1] = np.uint8(48)
            out[at + 2] = np.uint8(48)
            at = put_hex(out, at + 3, byte)
            pos += 1
        else:
            stop = pos + 1
            while stop < end and stop - pos < 4 and buf[stop] & 0xC0 == 0x80:
                stop += 1
            at = put_utf8(out, at, buf, pos, stop)
            if at == BAD:
                return BAD
            pos = stop
    return _put_quote(out, at)


@part
def _variable_length(buf: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Return the position behind a length in 7-bit groups (BAD if truncated or too long), and the length."""
    size = 0
    for i in range(5):
        if pos >= end:
            return BAD, 0
        byte = np.int64(buf[pos])
        pos += 1
        size |= (byte & 0x7F) << (7 * i)
        if byte < 128:
            return (pos, size) if pos + size <= end else (BAD, 0)
    return BAD, 0


@part
def _put_base64(out: Bytes, at: int, limit: int, buf: Bytes, pos: int, end: int, kind: np.int64) -> int:
    if at + 40 + (end - pos + 2) // 3 * 4 + (end - pos) // _BASE64_LINE * 3 > limit:
        return NO_ROOM
    at = _put_quote(out, at)
    for i in range(len(_BASE64_WORD)):
        out[at + i] = _BASE64_WORD[i]
    at = put_unsigned(out, at + len(_BASE64_WORD), np.uint64(kind))
    out[at] = _COLON
    at += 1
    line = pos + _BASE64_LINE
    while pos < end:
        if pos == line:
            at = put_escaped(out, _put_backslash(out, at), np.uint8(110))
            line += _BASE64_LINE
        size = min(3, end - pos)
        group = 0
        for i in range(3):
            group = (group << 8) | (np.int64(buf[pos + i]) if i < size else 0)
        for i in range(4):
            out[at + i] = _BASE64[(group >> (18 - 6 * i)) & 63] if i <= size else np.uint8(61)
        at += 4
        pos += size
    return _put_quote(out, at)


@part
def _put_packed_time(out: Bytes, at: int, kind: np.int64, packed: np.int64) -> int:
    """Write a DATE (10), TIME (11), DATETIME (12) or TIMESTAMP (7) in the server's 64-bit format."""
    at = _put_quote(out, at)
    if packed < 0:
        out[at] = np.uint8(45)
        at += 1
        packed = -packed
    if packed < 0:
        return BAD
    micros = packed & 0xFFFFFF
    whole = packed >> 24
    clock = whole & 0x1FFFF if kind != 11 else whole
    if kind != 11:
        date = whole >> 17
        months = date >> 5
        if months > 9999 * 13 + 12:
            return BAD
        at = put_date(out, at, months // 13, months % 13, date & 31)
    if kind != 10:
        if kind != 11:
            out[at] = _SPACE
            at += 1
        at = put_clock(out, at, (clock >> 12) & 0x3FF, (clock >> 6) & 63, clock & 63)
        at = put_fraction(out, at, micros, 6)
    return _put_quote(out, at)


@part
def _put_opaque(out: Bytes, at: int, limit: int, buf: Bytes, pos: int, end: int) -> int:
    if pos >= end:
        return BAD
    kind = np.int64(buf[pos])
    data, size = _variable_length(buf, pos + 1, end)
    if data == BAD:
        return BAD
    if kind == 246 and size >= 2:
        precision, scale = np.int64(buf[data]), np.int64(buf[data + 1])
        if precision > _DIGITS or scale > precision or decimal_size(precision, scale) + 2 > size:
            return BAD
        return put_decimal(out, at, buf, data + 2, precision, scale)
    if kind == 7 or 10 <= kind <= 12:
        return _put_packed_time(out, at, kind, np.int64(little(buf, data, 8))) if size == 8 else BAD
    return _put_base64(out, at, limit, buf, data, data + size, kind)


@part
def _put_scalar(out: Bytes, at: int, limit: int, buf: Bytes, kind: np.int64, pos: int, end: int) -> int:
    """Write a value that is neither array nor object, and whose bytes are at `pos`."""
    if at + _ROOM > limit:
        return NO_ROOM
    if kind == 4:
        if pos >= end or buf[pos] > 2:
            return BAD
        start = np.int64(buf[pos]) * 5
        size = 5 if buf[pos] == 2 else 4
        for i in range(size):
            out[at + i] = _LITERALS[start + i]
        return at + size
    if 5 <= kind <= 10:
        size = 2 if kind <= 6 else 4 if kind <= 8 else 8
        if pos + size > end:
            return BAD
        value = little(buf, pos, size)
        return put_unsigned(out, at, value) if kind % 2 == 0 else put_signed(out, at, signed(value, size))
    if kind == 11:
        return _put_json_double(out, at, little(buf, pos, 8)) if pos + 8 <= end else BAD
    if kind == 12:
        data, size = _variable_length(buf, pos, end)
        return BAD if data == BAD else _put_string(out, at, limit, buf, data, data + size)
    return _put_opaque(out, at, limit, buf, pos, end) if kind == 15 else BAD


@part
def _put_json_double(out: Bytes, at: int, bits: np.uint64) -> int:
    """Write a double. A whole number gets `.0`, so that it reads back as a double."""
    end = put_double(out, at, bits)
    for i in range(at, end):
        if out[i] == 46 or out[i] == 101:
            return end
    out[end] = np.uint8(46)
    out[end + 1] = np.uint8(48)
    return end + 2


@part
def _open(stack: NDArray[np.int64], depth: int, kind: np.int64, value: int, buf: Bytes, end: int) -> bool:
    """Push an array or object whose body is at `value`; return False if its entries do not fit the document."""
    wide = 4 if kind % 2 else 2
    if depth >= _DEPTH or value + 2 * wide > end:
        return False
    count = np.int64(little(buf, value, wide))
    keys = value + 2 * wide
    values = keys + (count * (wide + 2) if kind <= 1 else 0)
    stack[depth, _BASE] = value
    stack[depth, _LEFT] = count
    stack[depth, _ENTRY] = values
    stack[depth, _KEY] = keys if kind <= 1 else 0
    stack[depth, _WIDE] = wide
    return values + count * (wide + 1) <= end


@part
def _put_key(out: Bytes, at: int, limit: int, buf: Bytes, top: NDArray[np.int64], end: int) -> int:
    """Write the next key of an object and its colon."""
    wide = top[_WIDE]
    where = top[_BASE] + np.int64(little(buf, top[_KEY], wide))
    size = np.int64(little(buf, top[_KEY] + wide, 2))
    top[_KEY] += wide + 2
    if where + size > end:
        return BAD
    at = _put_string(out, at, limit, buf, where, where + size)
    if at < 0:
        return at
    out[at] = _COLON
    out[at + 1] = _SPACE
    return at + 2


@part
def _next_value(buf: Bytes, top: NDArray[np.int64]) -> tuple[np.int64, int]:
    """Return type and position of the container's next value: in its entry if small, else at its offset."""
    wide = top[_WIDE]
    entry = top[_ENTRY]
    top[_ENTRY] += wide + 1
    top[_LEFT] -= 1
    kind = np.int64(buf[entry])
    if 4 <= kind <= 6 or (wide == 4 and 7 <= kind <= 8):
        return kind, entry + 1
    return kind, top[_BASE] + np.int64(little(buf, entry + 1, wide))


@part
def put_json(out: Bytes, at: int, limit: int, buf: Bytes, pos: int, end: int, stack: NDArray[np.int64]) -> int:
    """Write the document in buf[pos:end] as a quoted field; return BAD if damaged, NO_ROOM if it exceeds `limit`.

    Up to SLACK bytes beyond `limit` may be written. `stack` is scratch of shape STACK. An empty document (a NULL forced
    into a NOT NULL column) becomes `null`, as on the server.
    """
    if at + _ROOM > limit:
        return NO_ROOM
    out[at] = QUOTE
    at += 1
    if pos == end:
        for i in range(4):
            out[at + i] = _LITERALS[i]
        out[at + 4] = QUOTE
        return at + 5
    depth = -1
    kind, value = np.int64(buf[pos]), pos + 1
    while True:
        first = kind <= 3
        if first:
            depth += 1
            if not _open(stack, depth, kind, value, buf, end):
                return BAD
            out[at] = np.uint8(123 if stack[depth, _KEY] else 91)
            at += 1
        else:
            at = _put_scalar(out, at, limit, buf, kind, value, end)
            if at < 0:
                return at
        while depth >= 0 and stack[depth, _LEFT] == 0:
            out[at] = np.uint8(125 if stack[depth, _KEY] else 93)
            at += 1
            depth -= 1
            first = False
        if depth < 0:
            out[at] = QUOTE
            return at + 1
        if at + _ROOM > limit:
            return NO_ROOM
        if not first:
            out[at] = _COMMA
            out[at + 1] = _SPACE
            at += 2
        if stack[depth, _KEY]:
            at = _put_key(out, at, limit, buf, stack[depth], end)
            if at < 0:
                return at
        kind, value = _next_value(buf, stack[depth])
        if value >= end:
            return BAD
