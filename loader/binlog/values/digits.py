"""Writes numbers and points in time as text into the output block.

Every writer takes the block and the position to write at, and returns the position behind its text. The caller ensures
that there is room: 32 bytes are enough for every writer.
"""

from __future__ import annotations

import numpy as np

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import load16, load32, load64, store16

# Two digits as one word. 128 entries: masked indexes are in bounds even if they are not below 100.
_PAIRS = np.frombuffer("".join(f"{n % 100:02d}" for n in range(128)).encode(), "<u2").astype(np.uint16)
_HEX = np.frombuffer("".join(f"{n:02x}" for n in range(256)).encode(), np.uint8).copy()
_POW10 = np.array([10**n for n in range(10)], np.uint64)

_U0 = np.uint64(0)
_U10 = np.uint64(10)
_U100 = np.uint64(100)
_U127 = np.uint64(127)
_U1000 = np.uint64(1000)
_ZERO = np.uint8(48)
_MINUS = np.uint8(45)
_DOT = np.uint8(46)
_COLON = np.uint8(58)
_SPACE = np.uint8(32)


@part
def little(buf: Bytes, pos: int, size: int) -> np.uint64:
    """Return the unsigned little-endian integer in 1 to 8 bytes."""
    if size == 4:
        return np.uint64(load32(buf, pos))
    if size == 1:
        return np.uint64(buf[pos])
    if size == 8:
        return load64(buf, pos)
    if size == 2:
        return np.uint64(load16(buf, pos))
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(buf[pos + i]) << np.uint64(8 * i)
    return value


@part
def big(buf: Bytes, pos: int, size: int) -> np.uint64:
    """Return the unsigned big-endian integer in 1 to 8 bytes."""
    value = np.uint64(0)
    for i in range(size):
        value = (value << np.uint64(8)) | np.uint64(buf[pos + i])
    return value


@part
def signed(value: np.uint64, size: int) -> np.int64:
    """Return the two's complement integer in the low `size` bytes."""
    spare = np.uint64(64 - 8 * size)
    return np.int64(value << spare) >> np.int64(spare)


@part
def packed_length(buf: Bytes, pos: int, end: int) -> tuple[int, np.int64]:
    """Return the position behind a length-encoded integer (BAD if truncated), and the integer."""
    if pos >= end:
        return BAD, np.int64(0)
    first = buf[pos]
    if first < 251:
        return pos + 1, np.int64(first)
    size = 2 if first == 252 else 3 if first == 253 else 8
    if pos + 1 + size > end:
        return BAD, np.int64(0)
    return pos + 1 + size, np.int64(little(buf, pos + 1, size))


@part
def _width(value: np.uint64) -> int:
    """Return the number of decimal digits."""
    if value < _U100:
        return 1 if value < _U10 else 2
    size = 2
    limit = _U100
    while size < 20 and value >= limit:
        size += 1
        limit *= _U10
    return size


@part
def put_unsigned(out: Bytes, pos: int, value: np.uint64) -> int:
    """Write decimal digits."""
    size = _width(value)
    at = pos + size
    while value >= _U100:
        rest = value // _U100
        at -= 2
        store16(out, at, _PAIRS[value - rest * _U100])
        value = rest
    if value >= _U10:
        store16(out, at - 2, _PAIRS[value])
    else:
        out[at - 1] = _ZERO + np.uint8(value)
    return pos + size


@part
def put_signed(out: Bytes, pos: int, value: np.int64) -> int:
    """Write decimal digits, after a minus sign if negative."""
    if value < 0:
        out[pos] = _MINUS
        return put_unsigned(out, pos + 1, np.uint64(~value) + np.uint64(1))
    return put_unsigned(out, pos, np.uint64(value))


@part
def put_padded(out: Bytes, pos: int, value: np.int64, width: int) -> int:
    """Write exactly `width` digits of a non-negative number, with leading zeros."""
    left = np.uint64(value)
    at = pos + width
    while at - pos >= 2:
        rest = left // _U100
        at -= 2
        store16(out, at, _PAIRS[left - rest * _U100])
        left = rest
    if at > pos:
        out[pos] = _ZERO + np.uint8(left % _U10)
    return pos + width


@part
def put_two(out: Bytes, pos: int, value: np.uint64) -> int:
    """Write two digits of a number below 100; two arbitrary digits for other numbers."""
    store16(out, pos, _PAIRS[value & _U127])
    return pos + 2


@part
def put_hex(out: Bytes, pos: int, byte: np.uint8) -> int:
    """Write two lower-case hex digits."""
    out[pos] = _HEX[2 * np.int64(byte)]
    out[pos + 1] = _HEX[2 * np.int64(byte) + 1]
    return pos + 2


@part
def put_fraction(out: Bytes, pos: int, micros: np.int64, digits: int) -> int:
    """Write a point and the first `digits` (0 to 6) of the microseconds; nothing for 0 digits."""
    if digits == 0:
        return pos
    out[pos] = _DOT
    value = np.uint64(micros)
    if digits == 3:
        value //= _U1000
    elif digits != 6:
        value //= _POW10[6 - digits]
    return put_padded(out, pos + 1, np.int64(value), digits)


@part
def put_date(out: Bytes, pos: int, year: np.int64, month: np.int64, day: np.int64) -> int:
    """Write `2026-11-21`. Parts may be zero."""
    century = np.uint64(year) // _U100
    put_two(out, pos, century)
    put_two(out, pos + 2, np.uint64(year) - century * _U100)
    out[pos + 4] = _MINUS
    put_two(out, pos + 5, np.uint64(month))
    out[pos + 7] = _MINUS
    return put_two(out, pos + 8, np.uint64(day))


@part
def put_clock(out: Bytes, pos: int, hour: np.int64, minute: np.int64, second: np.int64) -> int:
    """Write `09:30:00`, with hours up to 999."""
    pos = put_padded(out, pos, hour, 3 if hour > 99 else 2)
    out[pos] = _COLON
    put_two(out, pos + 1, np.uint64(minute))
    out[pos + 3] = _COLON
    return put_two(out, pos + 4, np.uint64(second))


@part
def put_datetime(
    out: Bytes, pos: int, ymd_hms: tuple[np.int64, np.int64, np.int64, np.int64, np.int64, np.int64]
) -> int:
    """Write `2026-11-21 09:30:00`."""
    year, month, day, hour, minute, second = ymd_hms
    pos = put_date(out, pos, year, month, day)
    out[pos] = _SPACE
    return put_clock(out, pos + 1, hour, minute, second)


@part
def put_instant(out: Bytes, pos: int, seconds: np.int64) -> int:
    """Write seconds since 1970 as UTC text in the proleptic Gregorian calendar, years 1970 to 9999."""
    # 32 bits unsigned: a division by a constant is then one multiplication.
    days = np.uint32(np.uint64(seconds) // np.uint64(86400))
    rest = np.uint32(np.uint64(seconds) - np.uint64(days) * np.uint64(86400))
    # The date from the days, by the 400-year cycle that starts on 0000-03-01.
    z = np.uint64(days) + np.uint64(719468)
    era = z // np.uint64(146097)
    doe = z - era * np.uint64(146097)
    yoe = (doe - doe // np.uint64(1460) + doe // np.uint64(36524) - doe // np.uint64(146096)) // np.uint64(365)
    doy = doe - (np.uint64(365) * yoe + yoe // np.uint64(4) - yoe // np.uint64(100))
    mp = (np.uint64(5) * doy + np.uint64(2)) // np.uint64(153)
    day = np.int64(doy - (np.uint64(153) * mp + np.uint64(2)) // np.uint64(5)) + 1
    month = np.int64(mp) + (3 if mp < _U10 else -9)
    year = np.int64(yoe + era * np.uint64(400)) + (1 if month <= 2 else 0)
    minutes = np.uint64(rest) // np.uint64(60)
    second = np.int64(np.uint64(rest) - minutes * np.uint64(60))
    hour = minutes // np.uint64(60)
    minute = np.int64(minutes - hour * np.uint64(60))
    return put_datetime(out, pos, (year, month, day, np.int64(hour), minute, second))
