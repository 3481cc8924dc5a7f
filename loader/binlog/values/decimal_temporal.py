"""Writes DECIMAL and the temporal types of row images as text.

Formats: MySQL internals, "Binary log row format", and the server's `decimal.c` and `my_time.cc`. All are big-endian,
with the sign stored so that bytes sort like values.
"""

from __future__ import annotations

import numpy as np

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.digits import (
    big,
    little,
    put_clock,
    put_date,
    put_datetime,
    put_fraction,
    put_instant,
    put_padded,
    put_unsigned,
)

BYTES_OF_DIGITS = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
_MINUS = np.uint8(45)
_DOT = np.uint8(46)
_U13 = np.uint64(13)
_LAST_YEAR = 9999
_LAST_HOUR = 838
_POW = np.array([1, 10, 100, 1000, 10000, 100000, 1000000], np.int64)


@part
def decimal_size(precision: int, scale: int) -> int:
    """Return the bytes of a DECIMAL(precision, scale) in a row image."""
    whole = precision - scale
    return whole // 9 * 4 + BYTES_OF_DIGITS[whole % 9] + scale // 9 * 4 + BYTES_OF_DIGITS[scale % 9]


@part
def _group(buf: Bytes, pos: int, size: int, start: int, flip: np.uint64) -> np.int64:
    """Return a group of digits. `flip` is 0xff for a negative number; the sign is the first bit at `start`."""
    value = np.uint64(0)
    for i in range(size):
        byte = np.uint64(buf[pos + i])
        if pos + i == start:
            byte ^= np.uint64(0x80)
        value = (value << np.uint64(8)) | (byte ^ flip)
    return np.int64(value)


@part
def put_decimal(out: Bytes, at: int, buf: Bytes, pos: int, precision: int, scale: int) -> int:
    """Write exact text with `scale` digits behind the point. Needs precision + 3 bytes."""
    start = pos
    flip = np.uint64(0) if buf[pos] & 0x80 else np.uint64(0xFF)
    if flip:
        out[at] = _MINUS
        at += 1
    whole = precision - scale
    size = BYTES_OF_DIGITS[whole % 9]
    begun = False
    if size:
        value = _group(buf, pos, size, start, flip)
        pos += size
        if value:
            at = put_unsigned(out, at, np.uint64(value))
            begun = True
    for _ in range(whole // 9):
        value = _group(buf, pos, 4, start, flip)
        pos += 4
        if begun:
            at = put_padded(out, at, value, 9)
        elif value:
            at = put_unsigned(out, at, np.uint64(value))
            begun = True
    if not begun:
        at = put_padded(out, at, np.int64(0), 1)
    if scale == 0:
        return at
    out[at] = _DOT
    at += 1
    for _ in range(scale // 9):
        at = put_padded(out, at, _group(buf, pos, 4, start, flip), 9)
        pos += 4
    rest = scale % 9
    if rest:
        at = put_padded(out, at, _group(buf, pos, BYTES_OF_DIGITS[rest], start, flip), rest)
    return at


@part
def _micros(buf: Bytes, pos: int, digits: int) -> np.int64:
    """Return the microseconds from the fraction bytes of a type with `digits` fractional digits."""
    size = (digits + 1) // 2
    if size == 0:
        return np.int64(0)
    return np.int64(big(buf, pos, size)) * _POW[6 - 2 * size]


@part
def put_old_date(out: Bytes, at: int, buf: Bytes, pos: int) -> int:
    """Write a DATE: 3 bytes, little-endian, 15 bits year, 4 month, 5 day. Return BAD after the year 9999."""
    value = np.int64(little(buf, pos, 3))
    if value >> 9 > _LAST_YEAR:
        return BAD
    return put_date(out, at, value >> 9, (value >> 5) & 15, value & 31)


@part
def put_datetime2(out: Bytes, at: int, buf: Bytes, pos: int, digits: int) -> int:
    """Write a DATETIME(n): 40 bits (sign, 17 year*13+month, 5 day, 5 hour, 6 minute, 6 second), then the fraction.

    Return BAD after the year 9999, and for a negative value.
    """
    value = np.int64(big(buf, pos, 5)) - 0x8000000000
    date, clock = value >> 17, value & 0x1FFFF
    months = np.uint64(date >> 5)
    year = np.int64(months // _U13)
    if value < 0 or year > _LAST_YEAR:
        return BAD
    month = np.int64(months) - 13 * year
    at = put_datetime(out, at, (year, month, date & 31, clock >> 12, (clock >> 6) & 63, clock & 63))
    return put_fraction(out, at, _micros(buf, pos + 5, digits), digits)


@part
def put_timestamp2(out: Bytes, at: int, buf: Bytes, pos: int, digits: int) -> int:
    """Write a TIMESTAMP(n): seconds since 1970, then the fraction. 0 is `0000-00-00 00:00:00`.

    MariaDB stores `1970-01-01 00:00:00.5` (UTC) as 0 seconds with a fraction.
    """
    seconds, micros = np.int64(big(buf, pos, 4)), _micros(buf, pos + 4, digits)
    if seconds == 0 and micros == 0:
        zero = np.int64(0)
        at = put_datetime(out, at, (zero, zero, zero, zero, zero, zero))
    else:
        at = put_instant(out, at, seconds)
    return put_fraction(out, at, micros, digits)


@part
def put_time2(out: Bytes, at: int, buf: Bytes, pos: int, digits: int) -> int:
    """Write a TIME(n): 24 bits and the fraction are one number, plus an offset of its highest bit.

    Return BAD beyond 838 hours.
    """
    size = (digits + 1) // 2
    shift = np.int64(8 * size)
    value = np.int64(big(buf, pos, 3 + size)) - (np.int64(0x800000) << shift)
    if value < 0:
        out[at] = _MINUS
        at += 1
        value = -value
    clock = value >> shift
    if clock >> 12 > _LAST_HOUR:
        return BAD
    micros = (value & ((np.int64(1) << shift) - 1)) * _POW[6 - 2 * size]
    at = put_clock(out, at, (clock >> 12) & 0x3FF, (clock >> 6) & 63, clock & 63)
    return put_fraction(out, at, micros, digits)
