"""Values of user variables in the log.

Format: `User_var_log_event` of log_event.cc. Integers take 8 bytes, reals are doubles. A DECIMAL has its precision and
scale, a byte each, and then the binary form of `decimal2bin` (strings/decimal.c): groups of nine digits in four bytes,
big-endian, the first bit inverted, and every bit inverted in a negative number.
"""

from __future__ import annotations

import struct
from decimal import Decimal

from loader.binlog.values.codepages import decode_text

KINDS = {0: "string", 1: "real", 2: "int", 4: "decimal"}
"""`Item_result` of the servers."""

_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def user_variable(
    kind: str, value: bytes | None, charset: str, *, unsigned: bool
) -> int | float | Decimal | str | bytes | None:
    """Return the value of a variable of that kind; its bytes if they are none of the kind or the character set."""
    if value is None:
        return None
    if kind == "int" and len(value) == 8:
        return int.from_bytes(value, "little", signed=not unsigned)
    if kind == "real" and len(value) == 8:
        return float(struct.unpack("<d", value)[0])
    if kind == "decimal":
        found = _decimal(value)
        return value if found is None else found
    if kind != "string" or charset == "binary":
        return value
    try:
        return decode_text(charset, value)
    except (UnicodeDecodeError, LookupError):
        return value


def _decimal(value: bytes) -> Decimal | None:
    if len(value) < 3:
        return None
    scale, whole, raw = value[1], value[0] - value[1], bytearray(value[2:])
    groups = [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9] if whole >= 0 else []
    if len(raw) != sum(_BYTES_OF_DIGITS[digits] for digits in groups) or not raw:
        return None
    negative = not raw[0] & 0x80
    raw[0] ^= 0x80
    if negative:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    digits, at = "", 0
    for count in groups:
        size = _BYTES_OF_DIGITS[count]
        digits += f"{int.from_bytes(raw[at : at + size], 'big'):0{count}d}" if count else ""
        at += size
    return Decimal(f"{'-' if negative else ''}{digits[:whole] or '0'}.{digits[whole:] or '0'}").quantize(
        Decimal(1).scaleb(-scale)
    )
