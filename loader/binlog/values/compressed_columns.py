"""Values of MariaDB's COMPRESSED columns, which its log holds as the table does.

Format: the server's `Field_longstr::compress` and `compress_zlib` (sql/field.cc). Nothing for the empty value; else a
byte of method: 0 and the value as it is, or 8 in its upper half for zlib, where 8 in the lower half says that the
stream has neither zlib's head nor its checksum, and the rest how many bytes follow with the value's size, big-endian.
"""

from __future__ import annotations

import numpy as np

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.inflate import Scratch, inflate
from loader.binlog.values.codepoints import Codes
from loader.binlog.values.digits import big
from loader.binlog.values.strings import put_string

ROOM = 4
"""Bytes of text for each byte of the value; the value itself is unpacked behind them."""

_MOST = 1032  # times that deflate can shrink
_ADLER = 65521


@part
def value_size(buf: Bytes, pos: int, end: int) -> int:
    """Bytes of the value; BAD for a head that is none."""
    if pos == end:
        return 0
    head = np.int64(buf[pos])
    if head == 0:
        return end - pos - 1
    count = head & 7
    if head >> 4 != 8 or count < 1 or count > 4 or pos + 1 + count > end:
        return BAD
    size = np.int64(big(buf, pos + 1, count))
    return size if size <= _MOST * (end - pos) else BAD


@part
def room_of(buf: Bytes, pos: int, end: int) -> int:
    """What `put_packed` needs for the value."""
    return (ROOM + 1) * max(0, value_size(buf, pos, end))


@part
def _sum_is(out: Bytes, start: int, stop: int, buf: Bytes, pos: int) -> bool:
    """Whether zlib's checksum at `pos` is that of the bytes."""
    a, b = np.int64(1), np.int64(0)
    for i in range(start, stop):
        a = (a + np.int64(out[i])) % _ADLER
        b = (b + a) % _ADLER
    return np.int64(big(buf, pos, 4)) == (b << 16) | a


@part
def put_packed(
    out: Bytes, at: int, buf: Bytes, pos: int, end: int, op: int, x: int, y: int, tables: Codes, work: Scratch
) -> int:
    """The field of the unpacked value, by the operation `op` for its type; BAD for what cannot be unpacked."""
    size = value_size(buf, pos, end)
    if size == BAD:
        return BAD
    if pos == end:
        return put_string(out, at, buf, pos, end, op, x, y, tables)
    head = np.int64(buf[pos])
    if head == 0:
        return put_string(out, at, buf, pos + 1, end, op, x, y, tables)
    pos += 1 + (head & 7)
    raw = head & 8
    if not raw:
        if pos + 6 > end or buf[pos] & 15 != 8 or buf[pos + 1] & 32 or big(buf, pos, 2) % np.uint64(31):
            return BAD
        pos += 2
        end -= 4
    start = at + ROOM * size + 2  # behind the text and its quotes
    stop = start + size
    if inflate(buf, pos, end, out, start, stop, work) != end:
        return BAD
    if not raw and not _sum_is(out, start, stop, buf, end):
        return BAD
    return put_string(out, at, out, start, stop, op, x, y, tables)
