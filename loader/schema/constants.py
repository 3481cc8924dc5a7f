"""The value that a new column gets in existing rows, in the form of staged text (unescaped).

Sources: MySQL manual, "Data Type Default Values"; MariaDB manual, "DEFAULT"; checked on both servers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from ipaddress import AddressValueError, IPv4Address

import numpy as np

from loader.model.table import GROWING_TEXTS, TEXTS
from loader.schema.changes import ColumnDefinition, Default
from loader.schema.labels import may_be_equal
from loader.schema.lexer import UNKNOWN
from loader.types.catalogue import TYPES, names_of
from loader.types.column_type import Encoding


class NotLoggedError(Exception):
    """The log does not have the effect of a statement. The text says why. It never leaves this package."""


_BITS = {known.name: 8 * known.log_bytes for known in TYPES if known.encoding is Encoding.INTEGER}
_BINARIES = names_of(Encoding.BYTES) - {"geometry"}
_ZEROS = {"date": "0000-00-00", "datetime": "0000-00-00 00:00:00", "time": "00:00:00"}
_ZEROS["timestamp"] = _ZEROS["datetime"]
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
_HOURS = r"(\d\d|[1-7]\d\d|8[0-2]\d|83[0-7])"
_FORMS = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "datetime": re.compile(rf"\d{{4}}-\d\d-\d\d {_CLOCK}"),
    "time": re.compile(rf"(-(?=.*[1-9]))?{_HOURS}:[0-5]\d:[0-5]\d(\.\d{{1,6}})?"),
}
"""Outside strict mode a server changes a DEFAULT in parentheses that is out of range, such as `('900:00:00')`."""
_ADDRESSES = {"uuid": "00000000-0000-0000-0000-000000000000", "inet4": "0.0.0.0", "inet6": "::"}  # noqa: S104
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_WHOLE = re.compile(r"-?\d{1,30}")
_FRACTIONAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_PLAIN = (1e-4, 1e15)  # floats in this range are written without an exponent


def existing_row_value(column: ColumnDefinition, *, strict: bool) -> str | None:
    """Return the value of an added column in every existing row; None for NULL.

    Args:
        column: the added column.
        strict: the statement ran in strict sql_mode.

    Raises:
        NotLoggedError: the server computed the value.
    """
    if column.generated:
        raise NotLoggedError("its values are generated")
    if column.auto_increment:
        raise NotLoggedError("the server numbered the rows")
    default = column.default
    if default is None or default.kind == "null":
        return _value_without_default(column)
    if default.kind == "expression":
        raise NotLoggedError(f"the server computed DEFAULT {default.text}")
    if not strict and column.type in GROWING_TEXTS:
        raise NotLoggedError("outside strict mode MySQL ignores the default of a TEXT column")
    if not strict and column.type in TEXTS and not default.text.isascii():
        raise NotLoggedError("outside strict mode MySQL replaces characters that the column's character set lacks")
    if not strict and may_be_equal(column.labels):
        raise NotLoggedError("outside strict mode the collation may treat another label as equal to the default")
    reader = _READERS.get(column.type)
    if reader is None or (text := reader(column, default)) is None:
        raise NotLoggedError(f"DEFAULT {default.text!r} of type {column.type} is not supported")
    return text


def _value_without_default(column: ColumnDefinition) -> str | None:
    """Return the value of a column without DEFAULT, or with DEFAULT NULL."""
    if column.nullable is False:
        if column.default is not None:
            raise NotLoggedError("the server gave existing rows another value than DEFAULT NULL")
        return _implicit_default(column)
    if column.type == "timestamp" and column.nullable is None and column.default is None:
        raise NotLoggedError("explicit_defaults_for_timestamp decides whether it is NULL or the time of the statement")
    return None


def _implicit_default(column: ColumnDefinition) -> str:
    kind = column.type
    if kind in {"datetime", "date", "time"}:
        return _fraction(_ZEROS[kind], column.size)
    if kind in _ADDRESSES:
        return _ADDRESSES[kind]
    if kind == "enum":
        return column.labels[0]
    if kind == "json":
        return "null"
    if kind == "decimal":
        return f"{Decimal():.{column.scale}f}"
    if kind in TEXTS | _BINARIES | {"set"}:
        return "00" * column.size if kind == "binary" else ""
    if kind in {*_BITS, "float", "double", "bit", "year"}:
        return "0000" if kind == "year" else "0"
    raise NotLoggedError(f"the implicit default of type {kind} is not known")


def _fraction(text: str, digits: int) -> str:
    """Return the time with its fraction padded to `digits` digits."""
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction:0<{digits}}" if digits else whole


def _integer(column: ColumnDefinition, default: Default) -> str | None:
    value = _integer_literal(default)
    bits = _BITS[column.type]
    low, high = (0, 2**bits) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return str(value) if value is not None and low <= value < high else None


def _integer_literal(default: Default) -> int | None:
    if default.kind == "hex":
        return None  # a number on MySQL; on MariaDB 0x31 is a number, but x'31' is text
    if default.kind == "bits":
        return int(default.text or "0", 2)
    return int(default.text) if _WHOLE.fullmatch(default.text) else None


def _bit(column: ColumnDefinition, default: Default) -> str | None:
    value = _integer_literal(default) if default.kind != "string" else None
    return str(value) if value is not None and 0 <= value < 1 << column.size else None


def _decimal(column: ColumnDefinition, default: Default) -> str | None:
    if default.kind not in {"string", "number"} or not _FRACTIONAL.fullmatch(default.text):
        return None
    value = Decimal(default.text)
    if column.positive and value < 0:
        return None  # outside strict mode the server stores 0 for a default in parentheses
    sign, digits, exponent = value.as_tuple()
    whole = len(digits) + int(exponent)
    if -int(value.normalize().as_tuple().exponent) > column.scale or whole > column.size - column.scale:
        return None
    text = f"{abs(value):.{column.scale}f}"
    return f"-{text}" if sign and value else text


def _float(column: ColumnDefinition, default: Default) -> str | None:
    if default.kind not in {"string", "number"} or not _FRACTIONAL.fullmatch(default.text):
        return None
    value = float(default.text)
    if column.rounded and value:
        return None
    if default.text.startswith("-") and not value:
        return None  # MariaDB stores 0 for it, and MySQL -0
    if column.positive and value < 0:
        return None  # the server stores 0 for a text such as '-1'
    if not (value == 0 or _PLAIN[0] <= abs(value) < _PLAIN[1]):
        return None
    shortest = np.float32(value) if column.type == "float" else np.float64(value)
    return np.format_float_positional(shortest, trim="-") if value else "0"


def _year(_: ColumnDefinition, default: Default) -> str | None:
    text = default.text
    if default.kind == "number" and text == "0":
        return "0000"
    return text if len(text) == 4 and text.isdecimal() and ("1901" <= text <= "2155" or text == "0000") else None


def _text(column: ColumnDefinition, default: Default) -> str | None:
    text = default.text
    if default.kind in {"hex", "bits"} or UNKNOWN in text:
        return None
    if default.kind == "number" and (not _WHOLE.fullmatch(text) or str(int(text)) != text):
        return None
    text = text.rstrip(" ") if column.type == "char" else text
    fits = column.type not in {"char", "varchar"} or len(text) <= column.length
    return text if fits else None


def _binary(column: ColumnDefinition, default: Default) -> str | None:
    if default.kind == "hex":
        raw = bytes.fromhex("0" * (len(default.text) % 2) + default.text)
    elif default.kind == "string" and default.text.isascii():
        raw = default.text.encode()
    else:
        return None
    if len(raw) > column.length:
        return None
    return raw.ljust(column.size if column.type == "binary" else 0, b"\0").hex()


def _enum(column: ColumnDefinition, default: Default) -> str | None:
    return default.text if default.kind == "string" and default.text in column.labels else None


def _set(column: ColumnDefinition, default: Default) -> str | None:
    members = set(default.text.split(",")) if default.text else set()
    if default.kind != "string" or not members <= set(column.labels):
        return None
    text = ""
    for label in column.labels:
        if label in members:
            text += ("," if text else "") + label  # like Field_set::val_str: an empty label gets no comma
    return text


def _temporal(column: ColumnDefinition, default: Default) -> str | None:
    """Return the literal if the server shows it in the same form; for TIMESTAMP only zero, which has no time zone."""
    kind, text = column.type, default.text
    zero = _ZEROS[kind]
    if (default.kind, text) == ("number", "0"):
        return _fraction(zero, column.size)
    if default.kind != "string":
        return None
    text = f"{text} 00:00:00" if kind in {"datetime", "timestamp"} and _FORMS["date"].fullmatch(text) else text
    known = text == zero or (kind != "timestamp" and bool(_FORMS[kind].fullmatch(text)) and _is_valid_date(kind, text))
    return _fraction(text, column.size) if known and len(text.partition(".")[2]) <= column.size else None


def _is_valid_date(kind: str, text: str) -> bool:
    if kind == "time":
        return True
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


def _address(column: ColumnDefinition, default: Default) -> str | None:
    text = default.text
    if default.kind != "string":
        return None
    if column.type == "uuid":
        return text.lower() if _UUID.fullmatch(text) else None
    try:
        return str(IPv4Address(text)) if column.type == "inet4" else None
    except AddressValueError:
        return None


_READERS: dict[str, Callable[[ColumnDefinition, Default], str | None]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(TEXTS, _text),
    **dict.fromkeys(
        ("binary", "varbinary"), _binary
    ),  # MariaDB converts the default of a BLOB through the table's charset
    **dict.fromkeys(_ZEROS, _temporal),
    **dict.fromkeys(_ADDRESSES, _address),
    **dict.fromkeys(("float", "double"), _float),
    "bit": _bit,
    "decimal": _decimal,
    "year": _year,
    "enum": _enum,
    "set": _set,
}
