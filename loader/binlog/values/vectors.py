"""Writes VECTOR as a list of numbers: `[1,2.5]`.

Format: the server's `Field_vector`: consecutive single-precision numbers, little-endian. The text is exact, unlike that
of `VECTOR_TO_STRING`, which has six digits: `STRING_TO_VECTOR` reads it back to the same bits (except denormals).
"""

from __future__ import annotations

import numpy as np

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.digits import little
from loader.binlog.values.floats import put_float
from loader.binlog.values.quoted_text import QUOTE

VECTOR_ROOM = 7
"""Maximum bytes of text per byte: `-0.00000000000000123456789,` is the longest number."""

_COMMA = np.uint8(44)
_OPEN, _CLOSE = np.uint8(91), np.uint8(93)


@part
def put_vector(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    """Write a quoted field; return BAD for incomplete or infinite numbers. Needs VECTOR_ROOM per byte, and 4 bytes."""
    if (end - pos) % 4:
        return BAD
    out[at] = QUOTE
    out[at + 1] = _OPEN
    at += 2
    first = pos
    while pos < end:
        if pos > first:
            out[at] = _COMMA
            at += 1
        bits = little(buf, pos, 4)
        if (bits >> np.uint64(23)) & np.uint64(0xFF) == np.uint64(0xFF):
            return BAD
        at = put_float(out, at, bits)
        pos += 4
    out[at] = _CLOSE
    out[at + 1] = QUOTE
    return at + 2
