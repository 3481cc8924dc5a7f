"""SipHash-2-4 with 128 bits. It is keyed, so nobody can construct two keys of a table with the same hash.

J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF" (2012), and the 128-bit variant of its reference
implementation. Among n keys, the probability of a collision is n² / 2^129.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import load64
from loader.binlog.values.digits import little

Words = NDArray[np.uint64]

_START = (
    np.uint64(0x736F6D6570736575),
    np.uint64(0x646F72616E646F6D),
    np.uint64(0x6C7967656E657261),
    np.uint64(0x7465646279746573),
)
_WIDE = np.uint64(0xEE)
_WIDER = np.uint64(0xDD)
_LENGTH = np.uint64(56)


@part
def _turn(x: np.uint64, by: int) -> np.uint64:
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@part
def _round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a += b
    b = _turn(b, 13) ^ a
    a = _turn(a, 32)
    c += d
    d = _turn(d, 16) ^ c
    a += d
    d = _turn(d, 21) ^ a
    c += b
    b = _turn(b, 17) ^ c
    c = _turn(c, 32)
    return a, b, c, d


@part
def siphash(buf: Bytes, at: int, size: int, low: np.uint64, high: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return both halves of the hash of `size` bytes, with a secret key of two halves."""
    a, b, c, d = low ^ _START[0], high ^ _START[1] ^ _WIDE, low ^ _START[2], high ^ _START[3]
    end = at + size - size % 8
    while at < end:
        word = load64(buf, at)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        at += 8
    word = little(buf, at, size % 8) | (np.uint64(size) << _LENGTH)
    d ^= word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= _WIDE
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b ^= _WIDER
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return first, a ^ b ^ c ^ d
