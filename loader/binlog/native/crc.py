"""CRC-32 of the log (zlib's polynomial): carry-less multiplication for long runs, tables for the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.carryless_crc import MIN_BYTES, fold, has_instruction
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import load32


def _tables() -> NDArray[np.uint32]:
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        tables[0, byte] = value
    for row in range(1, 8):
        for byte in range(256):
            previous = int(tables[row - 1, byte])
            tables[row, byte] = (previous >> 8) ^ int(tables[0, previous & 0xFF])
    return tables


_T = _tables()
_FOLDS = has_instruction()
_FULL = np.uint32(0xFFFFFFFF)
_LOW = np.uint32(0xFF)
_8 = np.uint32(8)
_16 = np.uint32(16)
_24 = np.uint32(24)


@part
def crc32(buf: NDArray[np.uint8], start: int, end: int) -> np.uint32:
    """Return the CRC-32 of buf[start:end]."""
    c = _FULL
    i = start
    if _FOLDS and end - start >= MIN_BYTES:
        c = fold(buf, start, end, c)
        i = start + (end - start) // 16 * 16
    while i + 8 <= end:
        a = c ^ load32(buf, i)
        c = (
            _T[7, a & _LOW]
            ^ _T[6, (a >> _8) & _LOW]
            ^ _T[5, (a >> _16) & _LOW]
            ^ _T[4, a >> _24]
            ^ _T[3, buf[i + 4]]
            ^ _T[2, buf[i + 5]]
            ^ _T[1, buf[i + 6]]
            ^ _T[0, buf[i + 7]]
        )
        i += 8
    while i < end:
        c = (c >> _8) ^ _T[0, (c ^ np.uint32(buf[i])) & _LOW]
        i += 1
    return c ^ _FULL
