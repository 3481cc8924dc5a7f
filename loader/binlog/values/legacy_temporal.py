"""Writes temporal values in the old formats: MySQL before 5.6, and MariaDB with mysql56_temporal_format=OFF.

Formats without fractional digits: the server's `Field_timestamp` (seconds), `Field_datetime` and `Field_time` (the
decimal digits of the value as one number), all little-endian. With fractional digits: MariaDB's `Field_*_hires`
(sql/field.cc), big-endian, the time in units of the last digit; a TIMESTAMP is seconds and then the fraction. The log
does not have the number of digits, and so not the size of a value.
"""

from __future__ import annotations

import numpy as np

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.digits import big, little, put_clock, put_datetime, put_fraction, put_instant, signed

OLD_TIMESTAMP, OLD_DATETIME, OLD_TIME = range(3)
SIZES = {"timestamp": (4, 5, 5, 6, 6, 7, 7), "datetime": (8, 6, 6, 7, 7, 7, 8), "time": (3, 4, 4, 5, 5, 5, 6)}
"""Bytes of a value by number of fractional digits."""

_MINUS = np.uint8(45)
_LAST_HOUR = 838
_ZERO_TIME = (_LAST_HOUR * 60 + 59) * 60 + 60  # seconds that TIME adds so that no value is negative
_POW = np.array([1, 10, 100, 1000, 10000, 100000, 1000000], np.int64)


@part
def _put_moment(
    out: Bytes, at: int, date: np.int64, clock: np.int64, radix: int, fraction: np.int64, digits: int
) -> int:
    """Write a date and a time of day from numbers with parts in this radix (60 or 100); return BAD if invalid."""
    months = 13 if radix == 60 else 100
    days = 32 if radix == 60 else 100
    day, month, year = date % days, date // days % months, date // days // months
    second, minute, hour = clock % radix, clock // radix % radix, clock // radix // radix
    if year > 9999 or month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        return BAD
    at = put_datetime(out, at, (year, month, day, hour, minute, second))
    return put_fraction(out, at, fraction * _POW[6 - digits], digits)


@part
def _put_span(out: Bytes, at: int, value: np.int64, radix: int, digits: int) -> int:
    """Write a TIME from a number in units of its last digit, with parts in this radix; return BAD if invalid."""
    if value < 0:
        out[at] = _MINUS
        at += 1
        value = -value
    fraction, clock = value % _POW[digits], value // _POW[digits]
    second, minute, hour = clock % radix, clock // radix % radix, clock // radix // radix
    if hour > _LAST_HOUR or minute > 59 or second > 59:
        return BAD
    return put_fraction(out, put_clock(out, at, hour, minute, second), fraction * _POW[6 - digits], digits)


@part
def _put_seconds(out: Bytes, at: int, seconds: np.int64, fraction: np.int64, digits: int) -> int:
    """Write a TIMESTAMP; 0 is `0000-00-00 00:00:00`. Return BAD for a fraction with too many digits."""
    if fraction >= _POW[digits]:
        return BAD
    if seconds == 0 and fraction == 0:
        zero = np.int64(0)
        at = put_datetime(out, at, (zero, zero, zero, zero, zero, zero))
    else:
        at = put_instant(out, at, seconds)
    return put_fraction(out, at, fraction * _POW[6 - digits], digits)


@part
def put_old_time(out: Bytes, at: int, buf: Bytes, pos: int, size: int, digits: int, kind: int) -> int:
    """Write the field of a value of `size` bytes with `digits` fractional digits; return BAD if it is invalid."""
    none = np.int64(0)
    if digits == 0:
        value = signed(little(buf, pos, size), size)
        if kind == OLD_TIMESTAMP:
            return _put_seconds(out, at, np.int64(little(buf, pos, 4)), none, 0)
        if kind == OLD_TIME:
            return _put_span(out, at, value, 100, 0)
        return BAD if value < 0 else _put_moment(out, at, value // 1000000, value % 1000000, 100, none, 0)
    if kind == OLD_TIMESTAMP:
        return _put_seconds(out, at, np.int64(big(buf, pos, 4)), np.int64(big(buf, pos + 4, size - 4)), digits)
    value = np.int64(big(buf, pos, size))
    if kind == OLD_TIME:
        return _put_span(out, at, value - _ZERO_TIME * _POW[digits], 60, digits)
    if value < 0:
        return BAD
    fraction, value = value % _POW[digits], value // _POW[digits]
    return _put_moment(out, at, value // 86400, value % 86400, 60, fraction, digits)
