"""The chunk kernel: turns packets of a binary result set into staged lines, without a Python object per row.

Format: the protocol's "Packets" (3 bytes length, 1 sequence number; a packet of 2^24-1 bytes is continued by the next)
and "Binary Protocol Resultset Row": 0x00, a bitmap of NULLs that starts at its third bit, and the values. Numbers are
little-endian. Temporal values have 0 to 12 bytes without trailing zero parts. All others are strings with a packed
length. A packet that starts with another byte ends the rows: 0xfe, or 0xff for an error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.values.codepoints import Codes, put_multibyte, put_single, put_unicode
from loader.binlog.values.digits import (
    big,
    little,
    packed_length,
    put_clock,
    put_date,
    put_datetime,
    put_fraction,
    put_padded,
    put_signed,
    put_unsigned,
    signed,
)
from loader.binlog.values.floats import put_double, put_float
from loader.binlog.values.operations import HEXED, HEXED_KEY
from loader.binlog.values.quoted_text import looks_undecodable, put_bytes, put_latin1, put_text, put_undecodable
from loader.binlog.values.vectors import put_vector

Ints = NDArray[np.int64]

(
    INT,
    UINT,
    FLOAT,
    DOUBLE,
    YEAR,
    TEXT,
    DECIMAL,
    HEX,
    DATE,
    DATETIME,
    TIME,
    BIT,
    LATIN1,
    SINGLE,
    MULTIBYTE,
    UNICODE,
    VECTOR,
) = range(17)
"""Operations. From TEXT on, a value has its length in front. As for the log, a text may add HEXED or HEXED_KEY."""

OP, SIZE, X, Y, MOST = range(5)
"""Fields of a column: operation; bytes of a fixed value, or fractional digits of a temporal value; two arguments of a
text's operation; the maximum bytes of text per byte of the value."""

MORE, NO_ROOM, REPLY, BAD_VALUE, DAMAGED = range(5)
"""Status of the kernel. MORE: the block is used up except for an incomplete packet. NO_ROOM: the output block is full.
REPLY: the packet at AT is whole and is not a row. BAD_VALUE: text that is invalid in its character set. DAMAGED: a row
that does not fit its packet."""

AT, OUT, ROWS, COLUMN = range(4)
"""State of the kernel: offset of the next packet; bytes in the output block; rows written; column of a bad value."""

_LONGEST = 0xFFFFFF
_MOST_FIXED = 40  # bytes of a value's text and its comma, in addition to twice its bytes
_COMMA = np.uint8(44)
_MINUS = np.uint8(45)
_DOT = np.uint8(46)
_ZERO = np.uint8(48)
_NINE = np.uint8(57)
_NEWLINE = np.uint8(10)
_N = np.frombuffer(b"\\N", np.uint8).copy()


@part
def _whole(block: Bytes, at: int, size: int) -> tuple[int, int]:
    """Return where the packet at `at` and its continuations end (BAD: block ends first), and the payload bytes."""
    total = 0
    while True:
        if at + 4 > size:
            return BAD, total
        length = int(little(block, at, 3))
        at += 4 + length
        if at > size:
            return BAD, total
        total += length
        if length != _LONGEST:
            return at, total


@part
def _join(block: Bytes, at: int, end: int) -> None:
    """Move the payloads of continued packets together, after the header of the first packet."""
    target = at + 4 + _LONGEST
    source = target
    while source < end:
        length = int(little(block, source, 3))
        for i in range(length):
            block[target + i] = block[source + 4 + i]
        target += length
        source += 4 + length


@part
def _put_decimal(out: Bytes, at: int, block: Bytes, pos: int, end: int) -> int:
    """Write the server's text without the leading zeros that ZEROFILL adds; BAD if it is no number."""
    if pos < end and block[pos] == _MINUS:
        out[at] = _MINUS
        at += 1
        pos += 1
    while pos + 1 < end and block[pos] == _ZERO and block[pos + 1] != _DOT:
        pos += 1
    size = point = 0  # bytes written, and how many of them are a point
    for i in range(pos, end):
        byte = block[i]
        if byte == _DOT and size and not point and i + 1 < end:
            point = 1
        elif byte < _ZERO or byte > _NINE:
            return BAD
        size += 1
        out[at] = byte
        at += 1
    return at if size else BAD


@part
def _put_moment(out: Bytes, at: int, block: Bytes, pos: int, size: int, clock: int, digits: int) -> int:
    """Write DATE, DATETIME or TIMESTAMP: year 2, month 1, day 1; hour, minute, second 1 each; microseconds 4 bytes."""
    year = np.int64(little(block, pos, 2)) if size >= 4 else np.int64(0)
    month = np.int64(block[pos + 2]) if size >= 4 else np.int64(0)
    day = np.int64(block[pos + 3]) if size >= 4 else np.int64(0)
    if not clock:
        return put_date(out, at, year, month, day)
    hour = np.int64(block[pos + 4]) if size >= 7 else np.int64(0)
    minute = np.int64(block[pos + 5]) if size >= 7 else np.int64(0)
    second = np.int64(block[pos + 6]) if size >= 7 else np.int64(0)
    at = put_datetime(out, at, (year, month, day, hour, minute, second))
    return put_fraction(out, at, np.int64(little(block, pos + 7, 4)) if size >= 11 else np.int64(0), digits)


@part
def _put_time(out: Bytes, at: int, block: Bytes, pos: int, size: int, digits: int) -> int:
    """Write TIME: negative 1, days 4, hours, minutes, seconds 1 each; microseconds 4 bytes."""
    zero = np.int64(0)
    if size < 8:
        return put_fraction(out, put_clock(out, at, zero, zero, zero), zero, digits)
    if block[pos]:
        out[at] = _MINUS
        at += 1
    hour = np.int64(little(block, pos + 1, 4)) * 24 + np.int64(block[pos + 5])
    at = put_clock(out, at, hour, np.int64(block[pos + 6]), np.int64(block[pos + 7]))
    return put_fraction(out, at, np.int64(little(block, pos + 8, 4)) if size >= 12 else zero, digits)


@part
def _put_decoded(out: Bytes, at: int, block: Bytes, pos: int, end: int, op: int, x: int, y: int, tables: Codes) -> int:
    if op == TEXT:
        return put_text(out, at, block, pos, end)
    if op == LATIN1:
        return put_latin1(out, at, block, pos, end)
    if op == SINGLE:
        return put_single(out, at, block, pos, end, tables, x)
    if op == MULTIBYTE:
        return put_multibyte(out, at, block, pos, end, tables, x, y)
    if op == UNICODE:
        return put_unicode(out, at, block, pos, end, x)
    return put_vector(out, at, block, pos, end)


@part
def _put_foreign(out: Bytes, at: int, block: Bytes, pos: int, end: int, op: int, x: int, y: int, tables: Codes) -> int:
    """Write a text that is not UTF-8, a text that may be invalid, or a vector."""
    done = _put_decoded(out, at, block, pos, end, op % HEXED, x, y, tables)
    if op >= HEXED and done == BAD:
        return put_undecodable(out, at, block, pos, end)
    return BAD if op >= HEXED_KEY and looks_undecodable(out, at, done) else done


@part
def _put_string(out: Bytes, at: int, block: Bytes, pos: int, end: int, op: int, digits: int) -> int:
    """Write a value that has its length in front."""
    size = end - pos
    if op == TEXT:
        return put_text(out, at, block, pos, end)
    if op == DECIMAL:
        return _put_decimal(out, at, block, pos, end)
    if op == HEX:
        return put_bytes(out, at, block, pos, end, 0)
    if op == DATE:
        return _put_moment(out, at, block, pos, size, 0, 0)
    if op == DATETIME:
        return _put_moment(out, at, block, pos, size, 1, digits)
    if op == TIME:
        return _put_time(out, at, block, pos, size, digits)
    return put_unsigned(out, at, big(block, pos, min(size, 8)))


@part
def _put_number(out: Bytes, at: int, block: Bytes, pos: int, op: int, size: int) -> int:
    """Write a value of fixed size."""
    value = little(block, pos, size)
    if op == INT:
        return put_signed(out, at, signed(value, size))
    if op == UINT:
        return put_unsigned(out, at, value)
    if op == DOUBLE:
        return put_double(out, at, value)
    if op == FLOAT:
        return put_float(out, at, value)
    return put_padded(out, at, np.int64(value), 4)


@part
def _put_row(
    out: Bytes, at: int, head: Bytes, block: Bytes, pos: int, end: int, columns: Ints, tables: Codes, state: Ints
) -> tuple[int, int]:
    """Write one staged line from the row in block[pos:end]; return the output position after it, and a status."""
    count = len(columns)
    nulls = pos + 1
    pos = nulls + (count + 9) // 8
    if pos > end:
        return at, DAMAGED
    for i in range(len(head)):
        out[at + i] = head[i]
    at += len(head)
    for i in range(count):
        if i:
            out[at] = _COMMA
            at += 1
        if block[nulls + ((i + 2) >> 3)] >> np.uint8((i + 2) & 7) & 1:
            out[at] = _N[0]
            out[at + 1] = _N[1]
            at += 2
            continue
        op, parameter = columns[i, OP], columns[i, SIZE]
        size = parameter
        if op >= TEXT:
            pos, size = packed_length(block, pos, end)
        if pos == BAD or size < 0 or size > end - pos:
            return at, DAMAGED
        if op >= LATIN1:
            at = _put_foreign(out, at, block, pos, pos + size, op, columns[i, X], columns[i, Y], tables)
        elif op >= TEXT:
            at = _put_string(out, at, block, pos, pos + size, op, parameter)
        else:
            at = _put_number(out, at, block, pos, op, size)
        if at == BAD:
            state[COLUMN] = i
            return at, BAD_VALUE
        pos += size
    out[at] = _NEWLINE
    return at + 1, MORE if pos == end else DAMAGED


@kernel("int64(uint8[::1], int64, uint8[::1], int64[:,::1], uint16[::1], uint8[::1], int64[::1])")
def stage_result(block: Bytes, size: int, head: Bytes, columns: Ints, tables: Codes, out: Bytes, state: Ints) -> int:
    """Append the staged lines of the rows in block[state[AT]:size] to `out`, and return a status.

    Args:
        block: uint8, bytes of packets.
        size: number of valid bytes in the block.
        head: uint8, the beginning of every line, up to its first column.
        columns: int64, shape (columns, 5), the fields above.
        tables: uint16, decoding tables of the character sets.
        out: uint8, the output block.
        state: int64, the state above.
    """
    most = 2  # hex doubles the bytes, and escapes at most double them
    for i in range(len(columns)):
        most = max(most, columns[i, MOST])
    while True:
        at = state[AT]
        end, length = _whole(block, at, size)
        if end == BAD:
            return MORE
        if length == 0 or block[at + 4] != 0:
            return REPLY
        if state[OUT] + len(head) + _MOST_FIXED * len(columns) + most * length > len(out):
            return NO_ROOM
        if length >= _LONGEST:
            _join(block, at, end)
        line, status = _put_row(out, state[OUT], head, block, at + 4, at + 4 + length, columns, tables, state)
        if status != MORE:
            return status
        state[OUT] = line
        state[ROWS] += 1
        state[AT] = end
