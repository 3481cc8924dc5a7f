"""Writes FLOAT and DOUBLE as the shortest decimal text that reads back to the same bits.

The digits follow Raffaello Giulietti, "The Schubfach way to render doubles" (2021). The layout is the server's
(`my_gcvt`): without exponent if the decimal point is within 15 places or before the last digit, else `1.5e-20`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import high_product
from loader.binlog.values.digits import put_padded, put_signed, put_unsigned

_LOWEST = -292
_HIGHEST = 324


def _powers() -> NDArray[np.uint64]:
    """Return 10^k for each k, scaled to 128 bits and rounded up, as high and low halves."""
    rows = np.zeros((_HIGHEST - _LOWEST + 1, 2), np.uint64)
    for k in range(_LOWEST, _HIGHEST + 1):
        exponent = (k * 1741647 >> 19) - 127  # floor(log2(10^k)) - 127
        over, under = (10**k, 1) if k >= 0 else (1, 10**-k)
        over, under = (over << -exponent, under) if exponent < 0 else (over, under << exponent)
        value = -(-over // under)
        rows[k - _LOWEST] = (value >> 64, value & (2**64 - 1))
    return rows


_G = _powers()
_U1 = np.uint64(1)
_U2 = np.uint64(2)
_U4 = np.uint64(4)
_U10 = np.uint64(10)
_U40 = np.uint64(40)
_DOT = np.uint8(46)
_ZERO = np.uint8(48)
_MINUS = np.uint8(45)
_E = np.uint8(101)


@part
def _round_to_odd(high: np.uint64, low: np.uint64, c: np.uint64) -> np.uint64:
    x1 = high_product(low, c)
    y0 = high * c
    y1 = high_product(high, c)
    total = y0 + x1
    if total < y0:
        y1 += _U1
    return y1 | (_U1 if total > _U1 else np.uint64(0))


@part
def shortest(c: np.uint64, q: np.int64, closer: bool) -> tuple[np.uint64, np.int64]:
    """Return digits and decimal exponent of c * 2^q. `closer`: the next lower float is only half as far away."""
    odd = c & _U1
    k = (q * 1262611 - (524031 if closer else 0)) >> 22
    h = np.uint64(q + ((-k * 1741647) >> 19) + 1)
    high, low = _G[-k - _LOWEST, 0], _G[-k - _LOWEST, 1]
    middle = _round_to_odd(high, low, (_U4 * c) << h)
    lower = _round_to_odd(high, low, (_U4 * c - _U2 + (_U1 if closer else np.uint64(0))) << h) + odd
    upper = _round_to_odd(high, low, (_U4 * c + _U2) << h) - odd
    s = middle // _U4
    if s >= _U10:
        tens = s // _U10
        low_in = lower <= _U40 * tens
        high_in = _U40 * tens + _U40 <= upper
        if low_in != high_in:
            return tens + (_U1 if high_in else np.uint64(0)), k + 1
    low_in = lower <= _U4 * s
    high_in = _U4 * s + _U4 <= upper
    if low_in != high_in:
        return s + (_U1 if high_in else np.uint64(0)), k
    half = _U4 * s + _U2
    up = middle > half or (middle == half and (s & _U1) != np.uint64(0))
    return s + (_U1 if up else np.uint64(0)), k


@part
def _lay_out(out: Bytes, pos: int, digits: np.uint64, exponent: np.int64) -> int:
    while digits % _U10 == np.uint64(0):
        digits //= _U10
        exponent += 1
    # Written one place to the right: then only the digits before the point move.
    end = put_unsigned(out, pos + 1, digits)
    size = end - pos - 1
    point = size + exponent  # position of the decimal point, from the first digit on
    if point < -14 or (point > 15 and point >= size):
        out[pos] = out[pos + 1]
        if size > 1:
            out[pos + 1] = _DOT
        else:
            end = pos + 1
        out[end] = _E
        return put_signed(out, end + 1, point - 1)
    if point <= 0:
        shift = 1 - point
        for i in range(end - 1, pos, -1):
            out[i + shift] = out[i]
        put_padded(out, pos, np.int64(0), shift + 1)
        out[pos + 1] = _DOT
        return end + shift
    for i in range(pos, pos + min(point, size)):
        out[i] = out[i + 1]
    if point < size:
        out[pos + point] = _DOT
        return end
    return put_padded(out, end - 1, np.int64(0), exponent)


@part
def put_double(out: Bytes, pos: int, bits: np.uint64) -> int:
    """Write a finite double from its bits (servers store no others). -0 keeps its sign."""
    if bits >> np.uint64(63):
        out[pos] = _MINUS
        pos += 1
    fraction = bits & np.uint64(0xFFFFFFFFFFFFF)
    exponent = np.int64((bits >> np.uint64(52)) & np.uint64(0x7FF))
    if exponent == 0 and fraction == np.uint64(0):
        out[pos] = _ZERO
        return pos + 1
    c = fraction if exponent == 0 else fraction | np.uint64(1 << 52)
    q = (1 if exponent == 0 else exponent) - 1075
    digits, power = shortest(c, q, fraction == np.uint64(0) and exponent > 1)
    return _lay_out(out, pos, digits, power)


@part
def put_float(out: Bytes, pos: int, bits: np.uint64) -> int:
    """Write a finite single-precision number from its 32 bits."""
    if bits >> np.uint64(31):
        out[pos] = _MINUS
        pos += 1
    fraction = bits & np.uint64(0x7FFFFF)
    exponent = np.int64((bits >> np.uint64(23)) & np.uint64(0xFF))
    if exponent == 0 and fraction == np.uint64(0):
        out[pos] = _ZERO
        return pos + 1
    c = fraction if exponent == 0 else fraction | np.uint64(1 << 23)
    q = (1 if exponent == 0 else exponent) - 150
    digits, power = shortest(c, q, fraction == np.uint64(0) and exponent > 1)
    return _lay_out(out, pos, digits, power)
