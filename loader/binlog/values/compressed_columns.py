"""Values of MariaDB's COMPRESSED columns: the log has them in the table's compressed format.

Format: the server's `Field_longstr::compress` and `compress_zlib` (sql/field.cc). The empty value has no bytes. Other
values start with a method byte. 0: the value follows uncompressed. 8 in the upper half: zlib. Then bit 3 says that the
stream has neither zlib's header nor its checksum, and bits 0 to 2 are the number of bytes of the uncompressed size,
which follows big-endian.
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
"""Bytes of text per byte of the value. The value is decompressed behind the room for its text."""

_MOST = 1032  # the highest compression ratio of deflate
_ADLER = 65521


@part
def value_size(buf: Bytes, pos: int, end: int) -> int:
    """Return the uncompressed bytes of the value; BAD for an invalid header."""
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
    """Return the bytes of output that `put_packed` needs for the value."""
    return (ROOM + 1) * max(0, value_size(buf, pos, end))


@part
def _sum_is(out: Bytes, start: int, stop: int, buf: Bytes, pos: int) -> bool:
    """Return whether the zlib checksum at buf[pos] is that of out[start:stop]."""
    a, b = np.int64(1), np.int64(0)
    for i in range(start, stop):
        a = (a + np.int64(out[i])) % _ADLER
        b = (b + a) % _ADLER
    return np.int64(big(buf, pos, 4)) == (b << 16) | a


@part
def put_packed(
    out: Bytes, at: int, buf: Bytes, pos: int, end: int, op: int, x: int, y: int, tables: Codes, work: Scratch
) -> int:
    """Decompress a value and write its field, by the operation `op` of its type; return BAD if it is invalid."""
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
    start = at + ROOM * size + 2  # behind the room for the text and its quotes
    stop = start + size
    if inflate(buf, pos, end, out, start, stop, work) != end:
        return BAD
    if not raw and not _sum_is(out, start, stop, buf, end):
        return BAD
    return put_string(out, at, out, start, stop, op, x, y, tables)
