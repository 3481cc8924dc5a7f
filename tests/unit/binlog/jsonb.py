"""A reference encoder of the server's binary JSON, and the text that the server shows for it.

Format: the server's `json_binary.h`. Python's dict, list, str, bool, None and float stand for themselves.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.unit.binlog.fields import decimal_bytes

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_NUMBERS = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q"}
_STRING, _DOUBLE, _OPAQUE = 12, 11, 15
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class Number:
    """An integer in the width of its type code: 5 int16, 6 uint16, 7 int32, 8 uint32, 9 int64, 10 uint64."""

    value: int
    kind: int


@dataclass(frozen=True)
class Opaque:
    """Bytes of a column type."""

    kind: int
    data: bytes
    text: str

    @classmethod
    def decimal(cls, value: Decimal, precision: int, scale: int) -> Opaque:
        """A DECIMAL, bare in the text."""
        return cls(246, bytes([precision, scale]) + decimal_bytes(value, precision, scale), f"{value:.{scale}f}")

    @classmethod
    def date(cls, year: int, month: int, day: int) -> Opaque:
        """A DATE."""
        return cls(10, _packed(_ymd(year, month, day) << 17, 0), f'"{year:04d}-{month:02d}-{day:02d}"')

    @classmethod
    def datetime(cls, parts: tuple[int, int, int, int, int, int, int], kind: int = 12) -> Opaque:
        """A DATETIME (12) or TIMESTAMP (7)."""
        y, mo, d, h, mi, s, us = parts
        text = f'"{y:04d}-{mo:02d}-{d:02d} {h:02d}:{mi:02d}:{s:02d}.{us:06d}"'
        return cls(kind, _packed(_ymd(y, mo, d) << 17 | h << 12 | mi << 6 | s, us), text)

    @classmethod
    def time(cls, negative: bool, hours: int, minutes: int, seconds: int, micros: int) -> Opaque:
        """A TIME."""
        whole = _packed(hours << 12 | minutes << 6 | seconds, micros)
        data = (-int.from_bytes(whole, "little")).to_bytes(8, "little", signed=True) if negative else whole
        return cls(11, data, f'"{"-" if negative else ""}{hours:02d}:{minutes:02d}:{seconds:02d}.{micros:06d}"')

    @classmethod
    def other(cls, kind: int, data: bytes) -> Opaque:
        """Any other type: base64."""
        return cls(kind, data, f'"base64:type{kind}:{base64.b64encode(data).decode()}"')


def _ymd(year: int, month: int, day: int) -> int:
    return (year * 13 + month) << 5 | day


def _packed(whole: int, micros: int) -> bytes:
    return (whole << 24 | micros).to_bytes(8, "little")


def document(value: Any, *, large: bool = False) -> bytes:
    """The bytes of a document; `large`: its containers take four bytes per offset even where two would do."""
    kind, data = _encoded(value, large)
    return bytes([kind]) + data


def _encoded(value: Any, large: bool) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return _LITERAL, bytes([0 if value is None else 1 if value else 2])
    if isinstance(value, Number):
        return value.kind, struct.pack(_NUMBERS[value.kind], value.value)
    if isinstance(value, int):
        return _encoded(Number(value, narrowest(value)), large)
    if isinstance(value, float):
        return _DOUBLE, struct.pack("<d", value)
    if isinstance(value, str):
        raw = value.encode()
        return _STRING, _length(len(raw)) + raw
    if isinstance(value, Opaque):
        return _OPAQUE, bytes([value.kind]) + _length(len(value.data)) + value.data
    return _container(value, large)


def _container(value: Any, large: bool) -> tuple[int, bytes]:
    wide = 4 if large else 2
    keys = [key.encode() for key in ordered(value)] if isinstance(value, dict) else []
    members = [value[key] for key in ordered(value)] if isinstance(value, dict) else value
    at = 2 * wide + len(keys) * (wide + 2) + len(members) * (wide + 1)
    key_entries = b""
    for key in keys:
        key_entries += _offset(at, wide) + len(key).to_bytes(2, "little")
        at += len(key)
    entries = tail = b""
    for member in members:
        kind, data = _encoded(member, large)
        if kind in (4, 5, 6) or (large and kind in (7, 8)):
            padding = b"\xff" if kind == 5 and data[-1] & 0x80 else b"\0"
            entries += bytes([kind]) + data.ljust(wide, padding)
        else:
            entries += bytes([kind]) + _offset(at, wide)
            tail += data
            at += len(data)
    body = _offset(len(members), wide) + _offset(at, wide) + key_entries + entries + b"".join(keys) + tail
    return (0 if keys or isinstance(value, dict) else 2) + large, body


def _offset(number: int, wide: int) -> bytes:
    return number.to_bytes(wide, "little")


def _length(size: int) -> bytes:
    groups = b""
    while size > 127:
        groups += bytes([size & 127 | 128])
        size >>= 7
    return groups + bytes([size])


def narrowest(value: int) -> int:
    """The type code that the server takes for an integer."""
    for kind, low, high in ((5, -(2**15), 2**15), (7, -(2**31), 2**31), (9, -(2**63), 2**63)):
        if low <= value < high:
            return kind
    return 10


def ordered(value: dict[str, Any]) -> list[str]:
    """Keys as the server stores them: by length, then by bytes."""
    return sorted(value, key=lambda key: (len(key.encode()), key.encode()))


def text(value: Any) -> str:
    """What `SELECT` shows."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Number):
        return str(value.value)
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value) + '"'
    if isinstance(value, Opaque):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(key)}: {text(value[key])}" for key in ordered(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(text(member) for member in value) + "]"
    return str(value)
