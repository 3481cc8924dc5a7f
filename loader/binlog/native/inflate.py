"""Decompresses deflate data in a kernel. It reads bit by bit: few columns are compressed.

Format: RFC 1951. The decoder follows Mark Adler's `puff.c`, zlib's reference implementation of the format. Its state is
in scratch space, since kernels cannot create arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part

Scratch = NDArray[np.int64]

WIDTH = 8
"""Columns of the scratch space. Its first ENTRIES items are used, row by row."""

_POS, _WORD, _HELD, _OUT = range(4)  # next byte; unused bits and their number; next byte of output
_LENGTHS = 8  # code lengths: up to 286 + 30
_LITERALS = _LENGTHS + 320  # a code: number of symbols of each length 0 to 15, then the symbols
_DISTANCES = _LITERALS + 16 + 288
_OFFSETS = _DISTANCES + 16 + 32
ENTRIES = _OFFSETS + 16

_LONGEST = 15
_BASE = np.array(
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258],
    np.int64,
)
_EXTRA = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0], np.int64)
_FAR = np.array(
    [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
     8193, 12289, 16385, 24577],
    np.int64,
)  # fmt: skip
_FAR_EXTRA = np.repeat(np.arange(-1, 14), 2).clip(0)[:30].astype(np.int64)
_ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64)


@part
def _get(work: Scratch, i: int) -> np.int64:
    return work[i >> 3, i & 7]


@part
def _set(work: Scratch, i: int, value: np.int64) -> None:
    work[i >> 3, i & 7] = value


@part
def _bits(buf: Bytes, end: int, work: Scratch, need: int) -> np.int64:
    """Return the next `need` bits as a number; BAD at the end of the data."""
    word, held, pos = _get(work, _WORD), _get(work, _HELD), _get(work, _POS)
    while held < need:
        if pos >= end:
            return np.int64(BAD)
        word |= np.int64(buf[pos]) << held
        pos += 1
        held += 8
    _set(work, _WORD, word >> need)
    _set(work, _HELD, held - need)
    _set(work, _POS, pos)
    return word & ((np.int64(1) << need) - 1)


@part
def _symbol(buf: Bytes, end: int, work: Scratch, code: int) -> np.int64:
    """Return the next symbol of a code; BAD at the end of the data, or for bits that the code does not have."""
    bits = first = index = np.int64(0)
    for length in range(1, _LONGEST + 1):
        bit = _bits(buf, end, work, 1)
        if bit == BAD:
            return np.int64(BAD)
        bits |= bit
        count = _get(work, code + length)
        if bits - count < first:
            return _get(work, code + 16 + index + bits - first)
        index += count
        first = (first + count) << 1
        bits <<= 1
    return np.int64(BAD)


@part
def _construct(work: Scratch, code: int, lengths: int, count: int) -> np.int64:
    """Build a code from the lengths of its symbols: return the number of unused codes, below 0 for too many symbols."""
    for i in range(16):
        _set(work, code + i, np.int64(0))
    for i in range(count):
        at = code + _get(work, lengths + i)
        _set(work, at, _get(work, at) + 1)
    left = np.int64(1)
    for i in range(1, 16):
        left = (left << 1) - _get(work, code + i)
        if left < 0:
            return left
    _set(work, _OFFSETS + 1, np.int64(0))
    for i in range(1, _LONGEST):
        _set(work, _OFFSETS + i + 1, _get(work, _OFFSETS + i) + _get(work, code + i))
    for i in range(count):
        length = _get(work, lengths + i)
        if length:
            at = _get(work, _OFFSETS + length)
            _set(work, code + 16 + at, np.int64(i))
            _set(work, _OFFSETS + length, at + 1)
    return left


@part
def _fixed(work: Scratch) -> None:
    for i in range(288):
        _set(work, _LENGTHS + i, np.int64(8 if i < 144 else 9 if i < 256 else 7 if i < 280 else 8))
    _construct(work, _LITERALS, _LENGTHS, 288)
    for i in range(30):
        _set(work, _LENGTHS + i, np.int64(5))
    _construct(work, _DISTANCES, _LENGTHS, 30)


@part
def _dynamic(buf: Bytes, end: int, work: Scratch) -> bool:
    """Read the codes of a block; return False if they are invalid."""
    literals, distances = _bits(buf, end, work, 5) + 257, _bits(buf, end, work, 5) + 1
    listed = _bits(buf, end, work, 4) + 4
    if literals < 257 or literals > 286 or distances < 1 or distances > 30 or listed < 4:
        return False
    for i in range(19):
        length = _bits(buf, end, work, 3) if i < listed else np.int64(0)
        if length == BAD:
            return False
        _set(work, _LENGTHS + _ORDER[i], length)
    if _construct(work, _LITERALS, _LENGTHS, 19) != 0:
        return False
    index = 0
    while index < literals + distances:
        symbol = _symbol(buf, end, work, _LITERALS)
        length, times = symbol, np.int64(1)
        if symbol == BAD or (symbol == 16 and index == 0):
            return False
        if symbol >= 16:
            length = _get(work, _LENGTHS + index - 1) if symbol == 16 else np.int64(0)
            more = _bits(buf, end, work, 2 if symbol == 16 else 3 if symbol == 17 else 7)
            times = more + (11 if symbol == 18 else 3)
            if more == BAD or index + times > literals + distances:
                return False
        for _ in range(times):
            _set(work, _LENGTHS + index, length)
            index += 1
    if _get(work, _LENGTHS + 256) == 0:
        return False
    left = _construct(work, _LITERALS, _LENGTHS, literals)
    if left < 0 or (left > 0 and literals - _get(work, _LITERALS) != 1):
        return False
    left = _construct(work, _DISTANCES, _LENGTHS + literals, distances)
    return left == 0 or (left > 0 and distances - _get(work, _DISTANCES) <= 1)


@part
def _stored(buf: Bytes, end: int, out: Bytes, stop: int, work: Scratch) -> bool:
    """Copy a stored block; return False if it is invalid."""
    _set(work, _WORD, np.int64(0))
    _set(work, _HELD, np.int64(0))
    size, check = _bits(buf, end, work, 16), _bits(buf, end, work, 16)
    pos, at = _get(work, _POS), _get(work, _OUT)
    if size == BAD or check != size ^ 0xFFFF or pos + size > end or at + size > stop:
        return False
    for i in range(size):
        out[at + i] = buf[pos + i]
    _set(work, _POS, pos + size)
    _set(work, _OUT, at + size)
    return True


@part
def _coded(buf: Bytes, end: int, out: Bytes, start: int, stop: int, work: Scratch) -> bool:
    """Decompress a block by its codes; return False if it is invalid."""
    at = _get(work, _OUT)
    while True:
        symbol = _symbol(buf, end, work, _LITERALS)
        if symbol == 256:
            _set(work, _OUT, at)
            return True
        if symbol == BAD or symbol > 285 or at >= stop:
            return False
        if symbol < 256:
            out[at] = np.uint8(symbol)
            at += 1
            continue
        more = _bits(buf, end, work, _EXTRA[symbol - 257])
        symbol, length = _symbol(buf, end, work, _DISTANCES), _BASE[symbol - 257] + more
        if more == BAD or symbol == BAD or symbol > 29:
            return False
        more = _bits(buf, end, work, _FAR_EXTRA[symbol])
        back = _FAR[symbol] + more
        if more == BAD or back > at - start or at + length > stop:
            return False
        for i in range(at, at + length):
            out[i] = out[i - back]
        at += length


@part
def inflate(buf: Bytes, pos: int, end: int, out: Bytes, start: int, stop: int, work: Scratch) -> int:
    """Decompress buf[pos:end] into exactly out[start:stop]; return the position behind the data, or BAD."""
    _set(work, _POS, np.int64(pos))
    _set(work, _WORD, np.int64(0))
    _set(work, _HELD, np.int64(0))
    _set(work, _OUT, np.int64(start))
    last = np.int64(0)
    while last == 0:
        last, kind = _bits(buf, end, work, 1), _bits(buf, end, work, 2)
        if last == BAD or kind == BAD or kind == 3:
            return BAD
        if kind == 0:
            fine = _stored(buf, end, out, stop, work)
        else:
            if kind == 1:
                _fixed(work)
            elif not _dynamic(buf, end, work):
                return BAD
            fine = _coded(buf, end, out, start, stop, work)
        if not fine:
            return BAD
    return _get(work, _POS) if _get(work, _OUT) == stop else BAD
