"""Numbers and points in time as text, written straight into the output block.

Every writer takes the block and the position to write at, and returns the position after its text. The caller has
made sure of room: 32 bytes are enough for each of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.jit import part

Bytes = NDArray[np.uint8]

_PAIRS = np.frombuffer("".join(f"{n:02d}" for n in range(100)).encode(), np.uint8).copy()
_HEX = np.frombuffer("".join(f"{n:02x}" for n in range(256)).encode(), np.uint8).copy()
_POW10 = np.array([10**n for n in range(10)], np.int64)

_U0 = np.uint64(0)
_U10 = np.uint64(10)
_U100 = np.uint64(100)
_ZERO = np.uint8(48)
_MINUS = np.uint8(45)
_DOT = np.uint8(46)
_COLON = np.uint8(58)
_SPACE = np.uint8(32)


@part
def little(buf: Bytes, pos: int, size: int) -> np.uint64:
    """Unsigned little-endian integer of 1 to 8 bytes."""
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(buf[pos + i]) << np.uint64(8 * i)
    return value


@part
def big(buf: Bytes, pos: int, size: int) -> np.uint64:
    """Unsigned big-endian integer of 1 to 8 bytes."""
    value = np.uint64(0)
    for i in range(size):
        value = (value << np.uint64(8)) | np.uint64(buf[pos + i])
    return value


@part
def signed(value: np.uint64, size: int) -> np.int64:
    """The two's complement number in the low `size` bytes."""
    spare = np.uint64(64 - 8 * size)
    return np.int64(value << spare) >> np.int64(spare)


@part
def put_unsigned(out: Bytes, pos: int, value: np.uint64) -> int:
    """Decimal digits."""
    size = 1
    rest = value
    while rest >= _U10:
        rest //= _U10
        size += 1
    at = pos + size
    while value >= _U100:
        pair = np.int64(value % _U100) * 2
        value //= _U100
        at -= 2
        out[at] = _PAIRS[pair]
        out[at + 1] = _PAIRS[pair + 1]
    if value >= _U10:
        pair = np.int64(value) * 2
        out[at - 2] = _PAIRS[pair]
        out[at - 1] = _PAIRS[pair + 1]
    else:
        out[at - 1] = _ZERO + np.uint8(value)
    return pos + size


@part
def put_signed(out: Bytes, pos: int, value: np.int64) -> int:
    """Decimal digits after a minus sign where needed."""
    if value < 0:
        out[pos] = _MINUS
        return put_unsigned(out, pos + 1, np.uint64(~value) + np.uint64(1))
    return put_unsigned(out, pos, np.uint64(value))


@part
def put_padded(out: Bytes, pos: int, value: np.int64, width: int) -> int:
    """Exactly `width` digits, with leading zeros."""
    at = pos + width
    while at - pos >= 2:
        pair = (value % 100) * 2
        value //= 100
        at -= 2
        out[at] = _PAIRS[pair]
        out[at + 1] = _PAIRS[pair + 1]
    if at > pos:
        out[pos] = _ZERO + np.uint8(value % 10)
    return pos + width


@part
def put_hex(out: Bytes, pos: int, byte: np.uint8) -> int:
    """Two lower-case digits."""
    out[pos] = _HEX[2 * np.int64(byte)]
    out[pos + 1] = _HEX[2 * np.int64(byte) + 1]
    return pos + 2


@part
def put_fraction(out: Bytes, pos: int, micros: np.int64, digits: int) -> int:
    """A point and the first `digits` (0 to 6) of the microseconds; nothing for 0 digits."""
    if digits == 0:
        return pos
    out[pos] = _DOT
    return put_padded(out, pos + 1, micros // _POW10[6 - digits], digits)


@part
def put_date(out: Bytes, pos: int, year: np.int64, month: np.int64, day: np.int64) -> int:
    """`2026-11-21`; zero parts are written as they are."""
    pos = put_padded(out, pos, year, 4)
    out[pos] = _MINUS
    pos = put_padded(out, pos + 1, month, 2)
    out[pos] = _MINUS
    return put_padded(out, pos + 1, day, 2)


@part
def put_clock(out: Bytes, pos: int, hour: np.int64, minute: np.int64, second: np.int64) -> int:
    """`09:30:00`; hours up to 838."""
    pos = put_padded(out, pos, hour, 3 if hour > 99 else 2)
    out[pos] = _COLON
    pos = put_padded(out, pos + 1, minute, 2)
    out[pos] = _COLON
    return put_padded(out, pos + 1, second, 2)


@part
def put_datetime(
    out: Bytes, pos: int, ymd_hms: tuple[np.int64, np.int64, np.int64, np.int64, np.int64, np.int64]
) -> int:
    """`2026-11-21 09:30:00`."""
    year, month, day, hour, minute, second = ymd_hms
    pos = put_date(out, pos, year, month, day)
    out[pos] = _SPACE
    return put_clock(out, pos + 1, hour, minute, second)


@part
def put_instant(out: Bytes, pos: int, seconds: np.int64) -> int:
    """Seconds since 1970 as UTC text, proleptic Gregorian, years 1970 to 9999."""
    days = seconds // 86400
    rest = seconds % 86400
    # Days to date by the 400-year cycle that starts on 0000-03-01.
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    day = doy - (153 * mp + 2) // 5 + 1
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (1 if month <= 2 else 0)
    return put_datetime(out, pos, (year, month, day, rest // 3600, rest // 60 % 60, rest % 60))
