"""Quotes names and texts for Spark SQL. No other module quotes."""

from __future__ import annotations

import re

from loader.model.table import TableName

# Catalogs use names as folder names, and some join them with dots.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\.:%#?*\"<>|\[\]{}]|^\s|\s$|!(?=[0-9a-f]{2})")

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x00": "\\u0000"})


def identifier(name: str) -> str:
    """Return a name between backticks, with the backticks inside it doubled."""
    return "`" + name.replace("`", "``") + "`"


def identifiers(names: tuple[str, ...]) -> str:
    """Return quoted names, separated by commas."""
    return ", ".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """Return a string literal. The loader's sessions do not substitute `${...}`, see `iceberg.warehouse`."""
    return "'" + text.translate(_ESCAPES) + "'"


def table_identifier(catalog: str, table: TableName) -> str:
    """Return the full quoted name of a source table in a catalog."""
    return f"{namespace_identifier(catalog, table)}.{identifier(catalog_name(table.table))}"


def namespace_identifier(catalog: str, table: TableName) -> str:
    """Return the full quoted name of the namespace of a source table in a catalog."""
    return f"{identifier(catalog)}.{identifier(catalog_name(table.schema))}"


def catalog_name(name: str) -> str:
    """Map a source name to a name that every catalog accepts. The mapping is injective.

    A byte that a catalog could misinterpret becomes `!` and two hex digits. So does a space at either end, and a `!`
    before two hex digits.
    """
    return _UNSAFE.sub(lambda match: "".join(f"!{byte:02x}" for byte in match[0].encode()), name)
