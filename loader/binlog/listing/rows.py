"""Writes the staged lines of a row event as rows of a listing.

In text, a row is a line with its number and a line per value: first the after image, then the before image. In JSON it
is an object with the operation, the row offset and both images. A column that the row image lacks is marked in text and
left out in JSON.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.listing.escapes import WIDEST
from loader.binlog.listing.fields import padded, put_bytes, put_field
from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.native.memory import load64
from loader.binlog.values.digits import put_unsigned

Ints = NDArray[np.int64]

KIND, AFTER, BEFORE, END = range(4)
"""Fields of a column: how it is shown, see fields; where the text before a value begins: in a row as it became, as it
was; and where the second text ends. In JSON both are a comma, a space, the name and a colon."""

NO_ROOM = -2
"""Returned instead of a position: the output block is full."""

SLACK = 64
"""Bytes that must follow the staged lines and the room of the output."""

_COMMA, _SPACE, _NEWLINE, _OPEN, _CLOSE = (np.uint8(ord(letter)) for letter in ", \n{}")
_I, _U, _D = np.uint8(73), np.uint8(85), np.uint8(68)
_U0 = np.uint64(0)
_TOP = np.uint64(0x8080808080808080)
_PAST_ZERO = np.uint64(0x7F7F7F7F7F7F7F7F)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_ROW = padded(b" - ROW# = ")
_ABSENT = padded(b"(not logged)")
_OP = padded(b'{"op": "')
_OFFSET = padded(b'", "row_offset": ')
_IMAGES = padded(b', "before": , "after": null')
_ROW_END, _ABSENT_END, _OP_END, _OFFSET_END = 10, 12, 8, 17
_BEFORE, _AFTER, _NULL = 12, 23, 27  # where these parts of _IMAGES end
_ROW_MOST = 160  # bytes of a row without names and values


@part
def line_end(buf: Bytes, pos: int) -> int:
    """Return the position of the line feed at the end of a staged line."""
    while True:
        word = load64(buf, pos) ^ _NEWLINES
        # Only a byte that is 0 leaves its top bit clear.
        if ((word & _PAST_ZERO) + _PAST_ZERO | word) & _TOP == _TOP:
            pos += 8
            continue
        while buf[pos] != _NEWLINE:
            pos += 1
        return pos


@part
def _after_comma(buf: Bytes, pos: int) -> int:
    while buf[pos] != _COMMA:
        pos += 1
    return pos + 1


@part
def _head(buf: Bytes, pos: int) -> tuple[np.uint64, int, int]:
    """Return the row offset of a line, the position of its absent columns, and that of the comma behind them."""
    pos = _after_comma(buf, _after_comma(buf, pos))
    offset = _U0
    while buf[pos] != _COMMA:
        offset = offset * np.uint64(10) + np.uint64(buf[pos] - np.uint8(48))
        pos += 1
    absent = _after_comma(buf, pos + 1)
    return offset, absent, _after_comma(buf, absent) - 1


@part
def _nibble(digit: np.uint8) -> np.uint8:
    return digit - np.uint8(48) if digit < 97 else digit - np.uint8(87)


@part
def _is_absent(buf: Bytes, absent: int, column: int) -> bool:
    """Return whether the bitmap in hex digits at `absent` has the column."""
    digit = _nibble(buf[absent + 2 * (column >> 3) + (0 if column & 4 else 1)])
    return bool(digit >> np.uint8(column & 3) & 1)


@part
def _put_image(
    out: Bytes, at: int, buf: Bytes, line: int, columns: Ints, names: Bytes, before: bool, json: bool
) -> int:
    """Write the values of a staged line, each after its name."""
    _, absent, pos = _head(buf, line)
    partial = pos > absent
    skipped = 2 if json else 0  # the comma and the space before the first name
    for i in range(len(columns)):
        left_out = partial and _is_absent(buf, absent, i)
        if left_out and json:
            pos += 3
            continue
        at = put_bytes(
            out,
            at,
            names,
            columns[i, BEFORE] if before else columns[i, AFTER] + skipped,
            columns[i, END] if before else columns[i, BEFORE],
        )
        skipped = 0
        if left_out:
            at = put_bytes(out, at, _ABSENT, 0, _ABSENT_END)
            pos += 3
        else:
            at, pos = put_field(out, at, buf, pos + 1, columns[i, KIND], json)
            if at == BAD:
                return BAD
        if not json:
            out[at] = _NEWLINE
            at += 1
    return at


@part
def _put_start(out: Bytes, at: int, number: int, buf: Bytes, before: int, after: int, json: bool) -> int:
    """Write what precedes the images of a row. `before`, `after`: positions of its staged lines, or -1."""
    if not json:
        at = put_bytes(out, at, _ROW, 0, _ROW_END)
        at = put_unsigned(out, at, np.uint64(number))
        out[at] = _NEWLINE
        return at + 1
    if number:
        out[at] = _COMMA
        out[at + 1] = _SPACE
        at += 2
    at = put_bytes(out, at, _OP, 0, _OP_END)
    out[at] = _I if before < 0 else _D if after < 0 else _U
    at = put_bytes(out, at + 1, _OFFSET, 0, _OFFSET_END)
    offset, _, _ = _head(buf, after if after >= 0 else before)
    return put_unsigned(out, at, offset)


@part
def _put_row(
    out: Bytes, at: int, number: int, buf: Bytes, before: int, after: int, columns: Ints, names: Bytes, json: bool
) -> int:
    at = _put_start(out, at, number, buf, before, after, json)
    for turn in range(2):
        old = json == (turn == 0)  # JSON has the image before the change first, text the image after it
        line = before if old else after
        if json:
            at = put_bytes(out, at, _IMAGES, 0 if old else _BEFORE, _BEFORE if old else _AFTER)
            if line < 0:
                at = put_bytes(out, at, _IMAGES, _AFTER, _NULL)
            else:
                out[at] = _OPEN
                at += 1
        if line >= 0:
            at = _put_image(out, at, buf, line, columns, names, old and not json, json)
            if at == BAD:
                return BAD
            if json:
                out[at] = _CLOSE
                at += 1
    if json:
        out[at] = _CLOSE
        at += 1
    return at


@part
def put_rows(
    out: Bytes, at: int, buf: Bytes, start: int, end: int, update: bool, columns: Ints, names: Bytes, json: bool
) -> int:
    """Write the rows of an event, whose staged lines are buf[start:end].

    Return the position behind them; BAD if a value is unreadable, NO_ROOM if the output block is full.
    """
    prefixes = 2 * (columns[-1, END] - columns[0, AFTER]) if len(columns) else 0
    number = 0
    while start < end:
        first, start = start, line_end(buf, start) + 1
        before, after = -1, first
        if buf[first] == _D:
            before, after = first, -1
            if update:
                after, start = start, line_end(buf, start) + 1
        if at + WIDEST * (start - first) + prefixes + 16 * len(columns) + _ROW_MOST + SLACK > len(out):
            return NO_ROOM
        at = _put_row(out, at, number, buf, before, after, columns, names, json)
        if at == BAD:
            return BAD
        number += 1
    return at


@kernel("int64(uint8[::1], uint8[::1], int64, int64, int64[:,::1], uint8[::1], int64)")
def list_rows(out: Bytes, lines: Bytes, end: int, update: int, columns: Ints, names: Bytes, json: int) -> int:
    """Write the rows of one event; see put_rows.

    Args:
        out: the output block.
        lines: the staged lines, and SLACK more bytes.
        end: bytes of the lines.
        update: 1 if each row is a delete and an insert.
        columns: the table's columns, fields KIND to END.
        names: the texts before values.
        json: 1 for JSON, 0 for text.
    """
    return put_rows(out, 0, lines, 0, end, update == 1, columns, names, json == 1)
