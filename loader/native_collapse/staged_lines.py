"""The kernels over staged lines: what each record is, and which lines are wanted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part
from loader.native_collapse.siphash import Words, siphash

Ints = NDArray[np.int64]

OP, SEQNO, OFFSET, ABSENT = range(4)
"""Of a record: `I`, `U` or `D` as a byte; seqno; row offset; 1 if columns are left out."""
LOW, HIGH = range(2)
"""Of a record's key: the halves of its hash."""

META = 5
"""Fields before those of the table's columns."""

_NEWLINE, _QUOTE, _COMMA = np.uint8(10), np.uint8(34), np.uint8(44)
_ZERO, _NINE = np.uint8(48), np.uint8(9)
_MOST_DIGITS = 18  # of what surely fits
_ABSENT_FIELD = 4


@part
def _field_end(buf: Bytes, at: int) -> int:
    """The place behind a field, of its comma or newline; -1 where it is not in the format."""
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
def _number(buf: Bytes, at: int, end: int) -> int:
    """An integer without a sign; -1 for what is none."""
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
    """Tell of each line what it is; the number of lines, or -1 if one is not in the format or they are too many.

    Args:
        buf: whole lines.
        keys: of each column of the table, 1 if it is of the key.
        secret: two halves of a key for the hashes.
        records: filled, a row for each line.
        hashes: the same.
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
    """Move the lines that are wanted to the front, one flag for each line; the number of their bytes.

    -1 where there are fewer lines than flags: the file was changed since its lines were counted.
    """
    begin, size = 0, 0
    for line in range(len(wanted)):
        at = begin
        while at < len(buf) and buf[at] != _NEWLINE:
            at += 1
        if at == len(buf):
            return -1
        at += 1
        if wanted[line]:
            for place in range(begin, at):
                buf[size + place - begin] = buf[place]
            size += at - begin
        begin = at
    return size


@kernel("int64(uint8[::1])")
def longest(buf: Bytes) -> int:
    """The number of bytes of the longest line, with its newline."""
    found, begin = 0, 0
    for at in range(len(buf)):
        if buf[at] == _NEWLINE:
            found = max(found, at + 1 - begin)
            begin = at + 1
    return found
