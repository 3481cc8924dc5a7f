"""Kernels over staged lines: they index records and select lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part
from loader.native_collapse.siphash import Words, siphash

Ints = NDArray[np.int64]

OP, SEQNO, OFFSET, ABSENT = range(4)
"""Columns of a record: `I`, `U` or `D` as a byte; seqno; row offset; 1 if table columns are left out."""
LOW, HIGH = range(2)
"""Columns of a key's hash: its two halves."""

META = 5
"""The number of fields before the table's columns."""

_NEWLINE, _QUOTE, _COMMA = np.uint8(10), np.uint8(34), np.uint8(44)
_ZERO, _NINE = np.uint8(48), np.uint8(9)
_MOST_DIGITS = 18  # more digits may not fit in an int64
_ABSENT_FIELD = 4


@part
def _field_end(buf: Bytes, at: int) -> int:
    """Return the index of the comma or newline after a field; -1 if the field is not in the format."""
    if buf[at] != _QUOTE:
        while buf[at] != _COMMA and buf[at] != _NEWLINE:
            at += 1
        return at
    at += 1
    while True:
        while buf[at] != _QUOTE:
            if buf[at] == _NEWLINE:
                return -1
            at += 1
        at += 1
        if buf[at] != _QUOTE:
            return at if buf[at] == _COMMA or buf[at] == _NEWLINE else -1
        at += 1


@part
def _line_end(buf: Bytes, at: int) -> int:
    """Return where the next line begins, or -1 if the line at `at` has no newline."""
    while at < len(buf):
        at += 1
        if buf[at - 1] == _NEWLINE:
            return at
    return -1


@part
def _number(buf: Bytes, at: int, end: int) -> int:
    """Return an unsigned integer; -1 if the text is not one."""
    value = 0
    if end == at or end - at > _MOST_DIGITS:
        return -1
    for place in range(at, end):
        digit = buf[place] - _ZERO
        if digit > _NINE:
            return -1
        value = value * 10 + int(digit)
    return value


@kernel("int64(uint8[::1], uint8[::1], uint64[::1], int64[:, ::1], uint64[:, ::1])")
def scan(buf: Bytes, keys: Bytes, secret: Words, records: Ints, hashes: Words) -> int:
    """Index the records of all lines. Return their number, or -1 if a line is not in the format or there are too many.

    Args:
        buf: complete lines.
        keys: for each column of the table, 1 if it belongs to the key.
        secret: the two halves of the secret key for the hashes.
        records: output, a row for each line.
        hashes: output, a row for each line.
    """
    at, line, size = 0, 0, len(buf)
    fields = META + len(keys)
    if size and buf[size - 1] != _NEWLINE:
        return -1
    while at < size:
        if line == len(records):
            return -1
        low, high = secret[0], secret[1]
        for field in range(fields):
            begin = at
            at = _field_end(buf, begin)
            if at < 0 or (buf[at] == _NEWLINE) != (field == fields - 1):
                return -1
            if field >= META:
                if keys[field - META]:
                    low, high = siphash(buf, begin, at - begin, low, high)
            elif field == OP:
                records[line, OP] = np.int64(buf[begin])
                if at != begin + 1:
                    return -1
            elif field == SEQNO or field == OFFSET:
                records[line, field] = _number(buf, begin, at)
                if records[line, field] < 0:
                    return -1
            elif field == _ABSENT_FIELD:
                records[line, ABSENT] = np.int64(at > begin)
            at += 1
        hashes[line, LOW], hashes[line, HIGH] = low, high
        line += 1
    return line


@kernel("int64(uint8[::1], uint8[::1])")
def keep(buf: Bytes, wanted: Bytes) -> int:
    """Move the flagged lines to the front. Return the number of their bytes.

    Return -1 if there are fewer lines than flags.
    """
    begin, size = 0, 0
    for line in range(len(wanted)):
        end = _line_end(buf, begin)
        if end < 0:
            return -1
        if wanted[line]:
            for place in range(begin, end):
                buf[size + place - begin] = buf[place]
            size += end - begin
        begin = end
    return size


@kernel("int64(uint8[::1])")
def longest(buf: Bytes) -> int:
    """Return the number of bytes of the longest line, including its newline."""
    found, begin = 0, 0
    for at in range(len(buf)):
        if buf[at] == _NEWLINE:
            found = max(found, at + 1 - begin)
            begin = at + 1
    return found
