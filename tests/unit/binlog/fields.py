"""Columns and tables of built logs: table maps with FULL metadata, and reference encoders of values."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

UTF8MB4, LATIN1, BINARY, UTF8MB3, ASCII = 255, 8, 63, 33, 11
_NUMERIC = {1, 2, 3, 4, 5, 8, 9, 13, 246}  # as MySQL's manual lists them, not as the loader does
_ENUM, _SET, _STRING = 247, 248, 254
_GROUP_BYTES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]


@dataclass(frozen=True)
class Field:
    """A column: how the log describes it and how it encodes a value."""

    name: str
    wire: int
    metadata: bytes
    encode: Callable[[Any], bytes]
    unsigned: bool = False
    collation: int | None = None
    labels: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of a built log; `key` are column indexes."""

    schema: str
    name: str
    fields: tuple[Field, ...]
    key: tuple[int, ...] = (0,)

    def body(self, table_id: int, *, optional: bytes | None = None, flags: int = 1, nullable: bool = True) -> bytes:
        """The body of its TABLE_MAP event."""
        kinds = bytes(_STRING if field.wire in (_ENUM, _SET) else field.wire for field in self.fields)
        metadata = b"".join(field.metadata for field in self.fields)
        return b"".join(
            (
                table_id.to_bytes(6, "little"),
                flags.to_bytes(2, "little"),
                _short(self.schema.encode("utf-8", "surrogateescape")) + b"\0",
                _short(self.name.encode("utf-8", "surrogateescape")) + b"\0",
                _sized(kinds),
                _sized(metadata),
                bytes([0xFF if nullable else 0] * ((len(kinds) + 7) // 8)),
                self.optional() if optional is None else optional,
            )
        )

    def optional(self, *, listed: bool = False, prefixes: bool = False) -> bytes:
        """The block that binlog_row_metadata=FULL adds; `listed`: a collation per column instead of a default one."""
        numeric = [field.unsigned for field in self.fields if field.wire in _NUMERIC]
        labelled = [field for field in self.fields if field.wire in (_ENUM, _SET)]
        texts = [field for field in self.fields if field.collation is not None and field not in labelled]
        block = _tagged(1, _bits(numeric)) if numeric else b""
        for some, (default_tag, list_tag) in ((texts, (2, 3)), (labelled, (10, 11))):
            collations = [field.collation or 0 for field in some]
            if collations:
                block += (
                    _tagged(list_tag, _numbers(collations)) if listed else _tagged(default_tag, _default(collations))
                )
        block += _tagged(4, b"".join(_sized(field.name.encode("utf-8", "surrogateescape")) for field in self.fields))
        for wire, tag in ((_SET, 5), (_ENUM, 6)):
            lists = [field.labels for field in labelled if field.wire == wire]
            if lists:
                block += _tagged(tag, b"".join(_packed(len(one)) + b"".join(map(_sized, one)) for one in lists))
        if self.key and prefixes:
            block += _tagged(9, b"".join(_packed(index) + _packed(0) for index in self.key))
        elif self.key:
            block += _tagged(8, _numbers(self.key))
        return block + _tagged(12, bytes([0xFF] * ((len(self.fields) + 7) // 8)))

    def image(self, values: Sequence[Any], columns: Sequence[int] | None = None) -> bytes:
        """A row image of these columns, by default of all; None is NULL."""
        fields = self.fields if columns is None else [self.fields[index] for index in columns]
        nulls = bytearray((len(fields) + 7) // 8)
        data = b""
        for index, (field, value) in enumerate(zip(fields, values, strict=True)):
            if value is None:
                nulls[index >> 3] |= 1 << (index & 7)
            else:
                data += field.encode(value)
        return bytes(nulls) + data


def integer(name: str = "n", size: int = 4, *, unsigned: bool = False) -> Field:
    """TINYINT to BIGINT by its size in bytes."""
    wire = {1: 1, 2: 2, 3: 9, 4: 3, 8: 8}[size]
    return Field(name, wire, b"", lambda value: value.to_bytes(size, "little", signed=not unsigned), unsigned)


def varchar(name: str = "v", length: int = 400, collation: int = UTF8MB4) -> Field:
    """VARCHAR or VARBINARY of so many bytes; a value is str (UTF-8) or bytes."""
    prefix = 2 if length > 255 else 1
    return Field(name, 15, length.to_bytes(2, "little"), _prefixed(prefix), collation=collation)


def char(name: str = "c", length: int = 40, collation: int = UTF8MB4) -> Field:
    """CHAR or BINARY of so many bytes."""
    metadata = bytes([254 ^ ((length & 0x300) >> 4), length & 0xFF])
    return Field(name, _STRING, metadata, _prefixed(2 if length > 255 else 1), collation=collation)


def blob(name: str = "b", prefix: int = 2, collation: int = BINARY) -> Field:
    """TINYBLOB to LONGBLOB, or a TEXT, by the bytes of its length."""
    return Field(name, 252, bytes([prefix]), _prefixed(prefix), collation=collation)


def json(name: str = "j") -> Field:
    """JSON; a value is the binary document."""
    return Field(name, 245, b"\4", _prefixed(4))


def compressed(name: str = "v", length: int = 65535, collation: int = UTF8MB4) -> Field:
    """MariaDB's COMPRESSED VARCHAR; a value is the bytes as they are stored."""
    return Field(name, 141, length.to_bytes(2, "little"), _prefixed(2 if length > 255 else 1), collation=collation)


def compressed_blob(name: str = "v", prefix: int = 4, collation: int = UTF8MB4) -> Field:
    """MariaDB's COMPRESSED TEXT or BLOB; a value is the bytes as they are stored."""
    return Field(name, 140, bytes([prefix]), _prefixed(prefix), collation=collation)


def vector(name: str = "v") -> Field:
    """VECTOR; a value is a list of numbers, or bytes."""
    encode = _prefixed(4)
    return Field(
        name, 242, b"\4", lambda v: encode(v if isinstance(v, bytes) else struct.pack(f"<{len(v)}f", *v)),
        collation=BINARY,
    )  # fmt: skip


def geometry(name: str = "g", collation: int | None = None) -> Field:
    """GEOMETRY; a value is SRID and WKB. MariaDB lists a collation for it."""
    return Field(name, 255, b"\4", _prefixed(4), collation=collation)


def floating(name: str = "f", size: int = 4) -> Field:
    """FLOAT or DOUBLE; a value is the integer of its bits."""
    return Field(name, 4 if size == 4 else 5, bytes([size]), lambda bits: bits.to_bytes(size, "little"))


def decimal(name: str = "d", precision: int = 10, scale: int = 2) -> Field:
    """DECIMAL."""
    return Field(name, 246, bytes([precision, scale]), lambda value: decimal_bytes(value, precision, scale))


def bit(name: str = "t", width: int = 1) -> Field:
    """BIT(width)."""
    return Field(name, 16, bytes([width % 8, width // 8]), lambda value: value.to_bytes((width + 7) // 8, "big"))


def date(name: str = "day") -> Field:
    """DATE; a value is (year, month, day)."""
    return Field(name, 10, b"", lambda v: (v[0] << 9 | v[1] << 5 | v[2]).to_bytes(3, "little"))


def year(name: str = "y") -> Field:
    """YEAR."""
    return Field(name, 13, b"", lambda value: bytes([value - 1900 if value else 0]))


def datetime(name: str = "at", digits: int = 0) -> Field:
    """DATETIME; a value is (year, month, day, hour, minute, second, microseconds)."""

    def encode(v: Sequence[int]) -> bytes:
        whole = ((v[0] * 13 + v[1]) << 5 | v[2]) << 17 | v[3] << 12 | v[4] << 6 | v[5]
        return (whole + (1 << 39)).to_bytes(5, "big") + _fraction(v[6], digits)

    return Field(name, 18, bytes([digits]), encode)


def timestamp(name: str = "ts", digits: int = 0) -> Field:
    """TIMESTAMP; a value is (seconds, microseconds)."""
    return Field(name, 17, bytes([digits]), lambda v: v[0].to_bytes(4, "big") + _fraction(v[1], digits))


def time(name: str = "tm", digits: int = 0) -> Field:
    """TIME; a value is (negative, hours, minutes, seconds, microseconds)."""

    def encode(v: Sequence[int]) -> bytes:
        size = (digits + 1) // 2
        number = (v[1] << 12 | v[2] << 6 | v[3]) << 8 * size | int.from_bytes(_fraction(v[4], digits), "big")
        return ((0x800000 << 8 * size) + (-number if v[0] else number)).to_bytes(3 + size, "big")

    return Field(name, 19, bytes([digits]), encode)


def enum(name: str, labels: Sequence[str | bytes], collation: int = UTF8MB4) -> Field:
    """ENUM; a value is the label's number from 1 on."""
    size = 1 if len(labels) < 256 else 2
    encode: Callable[[int], bytes] = lambda value: value.to_bytes(size, "little")  # noqa: E731
    return Field(name, _ENUM, bytes([_ENUM, size]), encode, collation=collation, labels=_raw(labels))


def set_of(name: str, labels: Sequence[str | bytes], collation: int = UTF8MB4) -> Field:
    """SET; a value is the bit mask."""
    size = (len(labels) + 7) // 8
    size = 8 if size > 4 else size
    encode: Callable[[int], bytes] = lambda value: value.to_bytes(size, "little")  # noqa: E731
    return Field(name, _SET, bytes([_SET, size]), encode, collation=collation, labels=_raw(labels))


def decimal_bytes(value: Decimal, precision: int, scale: int) -> bytes:
    """The server's packed DECIMAL: groups of nine digits, big-endian, ones' complement when negative."""
    digits = f"{value.copy_abs():.{scale}f}".replace(".", "").zfill(precision)[-precision:]
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    cut = len(whole) % 9
    groups = [whole[:cut], *_nines(whole[cut:]), *_nines(fraction)]
    raw = bytearray(b"".join(int(one).to_bytes(_GROUP_BYTES[len(one)], "big") for one in groups if one))
    raw[0] ^= 0x80
    return bytes(byte ^ 0xFF for byte in raw) if value.is_signed() else bytes(raw)


def _nines(digits: str) -> list[str]:
    return [digits[at : at + 9] for at in range(0, len(digits), 9)]


def _fraction(micros: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    return (micros // 10 ** (6 - digits) * 10 ** (2 * size - digits)).to_bytes(size, "big")


def _prefixed(prefix: int) -> Callable[[str | bytes], bytes]:
    def encode(value: str | bytes) -> bytes:
        raw = value.encode() if isinstance(value, str) else value
        return len(raw).to_bytes(prefix, "little") + raw

    return encode


def _raw(labels: Iterable[str | bytes]) -> tuple[bytes, ...]:
    return tuple(label.encode() if isinstance(label, str) else label for label in labels)


def _default(collations: Sequence[int]) -> bytes:
    common = max(set(collations), key=collations.count)
    odd = [(index, found) for index, found in enumerate(collations) if found != common]
    return _packed(common) + b"".join(_packed(index) + _packed(found) for index, found in odd)


def _bits(flags: Sequence[bool]) -> bytes:
    padded = [*flags, *[False] * (-len(flags) % 8)]
    return bytes(sum(flag << (7 - i) for i, flag in enumerate(padded[at : at + 8])) for at in range(0, len(padded), 8))


def _numbers(values: Iterable[int]) -> bytes:
    return b"".join(_packed(value) for value in values)


def _tagged(tag: int, value: bytes) -> bytes:
    return bytes([tag]) + _sized(value)


def _sized(value: bytes) -> bytes:
    return _packed(len(value)) + value


def _short(value: bytes) -> bytes:
    return bytes([len(value)]) + value


def _packed(number: int) -> bytes:
    return bytes([number]) if number < 251 else b"\xfc" + number.to_bytes(2, "little")
