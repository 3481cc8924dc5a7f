"""Kernels that convert staged text to values: they undo escapes and decode hex digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part

Offsets = NDArray[np.int64]

_BACKSLASH, _X = np.uint8(92), np.uint8(120)
_ZERO, _NINE, _A, _F, _N, _R = np.uint8(48), np.uint8(57), np.uint8(97), np.uint8(102), np.uint8(110), np.uint8(114)


@kernel("int64(uint8[::1], int64[::1], uint8[::1], int64[::1])")
def unescape(data: Bytes, bounds: Offsets, out: Bytes, ends: Offsets) -> int:
    r"""Undo `\\`, `\n`, `\r` and `\0`. Return the number of bytes.

    Texts that begin with `\x` are hex and stay unchanged.

    Args:
        data: the bytes of all texts.
        bounds: the start of each text, then the end of the last text.
        out: output, the bytes of all values.
        ends: output, the bounds of the values.
    """
    size = 0
    ends[0] = 0
    for text in range(len(bounds) - 1):
        at, end = bounds[text], bounds[text + 1]
        plain = end - at > 1 and data[at] == _BACKSLASH and data[at + 1] == _X
        while at < end:
            byte = data[at]
            at += 1
            if byte == _BACKSLASH and not plain and at < end:
                byte = data[at]
                at += 1
                if byte == _N:
                    byte = np.uint8(10)
                elif byte == _R:
                    byte = np.uint8(13)
                elif byte == _ZERO:
                    byte = np.uint8(0)
            out[size] = byte
            size += 1
        ends[text + 1] = size
    return size


@part
def _digit(byte: np.uint8) -> int:
    if _ZERO <= byte <= _NINE:
        return int(byte - _ZERO)
    if _A <= byte <= _F:
        return int(byte - _A) + 10
    return -1


@kernel("int64(uint8[::1], int64[::1], uint8[::1], int64[::1])")
def unhex(data: Bytes, bounds: Offsets, out: Bytes, ends: Offsets) -> int:
    """Decode pairs of hex digits. Return the number of bytes, or -1 for other text. Arguments: see `unescape`."""
    size = 0
    ends[0] = 0
    for text in range(len(bounds) - 1):
        if (bounds[text + 1] - bounds[text]) % 2:
            return -1
        for at in range(bounds[text], bounds[text + 1], 2):
            high, low = _digit(data[at]), _digit(data[at + 1])
            if high < 0 or low < 0:
                return -1
            out[size] = np.uint8(high * 16 + low)
            size += 1
        ends[text + 1] = size
    return size
