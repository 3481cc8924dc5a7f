"""Decides which type changes keep the values of existing rows, as staged text and in the column's Spark type.

A narrower type keeps values if the server refuses, in strict mode, values that do not fit. The warehouse then keeps the
wider type. Sources: MySQL manual, "Server SQL Modes", "String Data Type Syntax"; and both servers: tests/integration/
schema tries every pair of types.
"""

from __future__ import annotations

import re

from loader.model.table import Column
from loader.schema.changes import ColumnDefinition
from loader.schema.constants import NotLoggedError
from loader.schema.labels import label_shape
from loader.types.catalogue import names_of
from loader.types.column_type import Encoding
from loader.types.warehouse import spark_type, widened_type

INTEGERS = names_of(Encoding.INTEGER)
_TEXTS = {"tinytext": 1 << 8, "text": 1 << 16, "mediumtext": 1 << 24, "longtext": 1 << 32}
_BLOBS = {"varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_BYTES = {"char": 1 << 8, "varchar": 1 << 16} | _TEXTS
"""Text types, with an upper bound of the length of a value, in bytes; of CHAR in characters."""

TEXTS = set(_BYTES)
"""All text types. A column that a statement adds without a character set has that of its table."""

_NUMERIC_LABEL = re.compile(r"\s*[+-]?\d")
"""How a label begins that the server can read as the number of another label."""

_WIDEST = 4  # maximum bytes of a character
CHANGES_CHARACTERS = {"cp932", "tis620"}
"""Character sets for which the servers' conversion changes some characters."""

_NOT_ASCII = {"", "ucs2", "utf16", "utf16le", "utf32"}
"""Character sets in which ASCII characters have other bytes; "" is an unknown one."""

_NUMBERS = {("float", "float"), ("double", "double"), ("float", "double"), ("bit", "bit"), ("decimal", "decimal")}
_SAME = {"date", "year", "time", "json", "geometry", "uuid", "inet4", "inet6"}
_GROWING = {"datetime", "timestamp"}


def max_kept_length(old: Column, new: ColumnDefinition) -> int | None:
    """Check that a type change in strict mode keeps all values; return `ColumnOrigin.longest` for it.

    Raises:
        NotLoggedError: it may change values.
    """
    after = as_column(new)
    if new.generated or new.rounded:
        raise NotLoggedError("its values are generated" if new.generated else f"{new.type} with a fixed scale rounds")
    if new.type in TEXTS and old.type in {"enum", *TEXTS}:
        return _max_kept_text(old, new)
    if not _keeps_values(old, after):
        raise NotLoggedError(f"{old} becomes {after}")
    return None


def fills_null_with_time(new: ColumnDefinition) -> bool:
    """Return whether a NULL becomes the time of the statement. Strict mode refuses it for all other types."""
    return new.type == "timestamp" and new.nullable is not True


def keeps_labels(old: Column, charset: str) -> bool:
    """Return whether the bytes of a column's labels are the same text in another character set."""
    return not old.labels or ({old.charset, charset}.isdisjoint(_NOT_ASCII) and all(map(str.isascii, old.labels)))


def as_column(new: ColumnDefinition) -> Column:
    """Return the column of a definition. Its character set is empty if the statement does not name one."""
    labelled = new.type in {"enum", "set"}
    text = labelled or new.type in TEXTS
    return Column(new.name, new.type, new.unsigned, new.size, new.scale, new.charset if text else "", new.labels)


def _keeps_values(old: Column, new: Column) -> bool:
    pair = old.type, new.type
    if set(pair) <= INTEGERS or pair in _NUMBERS:
        return old.scale == new.scale and _has_common_type(old, new)
    if old.type in _BLOBS and new.type in _BLOBS:
        return True
    if old.type == "binary":
        return new.type in _BLOBS or (new.type == "binary" and old.size == new.size)
    if old.type == "enum":
        return new.type == "enum" and _keeps_removed_labels(old.labels, new.labels)
    if pair == ("set", "set"):
        # The text of a value has the labels in the order of the type.
        return [label for label in new.labels if label in old.labels] == list(old.labels)
    if old.type != new.type:
        return False
    return (old.type in _SAME and old.size == new.size) or (old.type in _GROWING and old.size <= new.size)


def _has_common_type(old: Column, new: Column) -> bool:
    """Return whether the warehouse has a type for the values of both columns."""
    return widened_type(spark_type(old), spark_type(new)) is not None


def _max_kept_text(old: Column, new: ColumnDefinition) -> int | None:
    """Return the length up to which texts keep trailing whitespace: servers cut it even in strict mode; None for all.

    Neither a CHAR nor a label has trailing spaces, but both can end with other whitespace.
    """
    if new.type == "char" and old.type not in {"char", "enum"}:
        raise NotLoggedError("CHAR removes trailing spaces")
    if new.type in {"char", "varchar"}:
        return new.length
    if new.type == "longtext" or (old.type == new.type and old.charset == new.charset != ""):
        return None
    most = _BYTES["char" if old.type == "enum" else old.type] * _WIDEST
    return None if most <= _TEXTS[new.type] else (_TEXTS[new.type] - 1) // _WIDEST


def _keeps_removed_labels(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """Return whether no removed label can have become another label, by its number or by a collation.

    Then strict mode refuses the change while a row has a removed label.
    """
    gone = [label for label in old if label not in new]
    shapes = {label_shape(label) for label in new}
    return all(
        label.isascii() and not _NUMERIC_LABEL.match(label) and label_shape(label) not in shapes for label in gone
    )
