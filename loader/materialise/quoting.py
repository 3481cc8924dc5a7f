"""Quotes names and texts for Spark SQL. No other module quotes."""

from __future__ import annotations

import re
import string

from loader.model.table import TableName

# Catalogs use names as folder names, and some join them with dots.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\.:%#?*\"<>|\[\]{}]|^\s|\s$|!(?=[0-9a-f]{2})")

# Hive and Glue accept letters, digits and `_`, and do not distinguish upper from lower case.
_PLAIN_CATALOGS = {"glue", "hive"}
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # others are mapped by their bytes
_NOT_PLAIN = re.compile(r"[^a-z0-9_]|_(?=x[0-9a-f]{2})")

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


def table_identifier(catalog: str, kind: str, table: TableName) -> str:
    """Return the full quoted name of a source table in a catalog of this type."""
    return f"{namespace_identifier(catalog, kind, table)}.{identifier(catalog_name(table.table, kind))}"


def namespace_identifier(catalog: str, kind: str, table: TableName) -> str:
    """Return the full quoted name of the namespace of a source table in a catalog of this type."""
    return f"{identifier(catalog)}.{identifier(catalog_name(table.schema, kind))}"


def catalog_name(name: str, kind: str) -> str:
    """Map a source name to a name that a catalog of this type accepts.

    The mapping is injective, but for upper and lower case where the catalog does not distinguish them: then
    `check_owner` of `iceberg.warehouse` refuses the second table.

    A byte that a catalog could misinterpret becomes `!` and two hex digits. So does a space at either end, and a `!`
    before two hex digits. For Hive and Glue, each byte but letters, digits and `_` becomes `_x` and two hex digits.
    """
    if kind in _PLAIN_CATALOGS:
        return _NOT_PLAIN.sub(lambda match: _hexadecimal(match, "_x"), name.translate(_LOWER))
    return _UNSAFE.sub(lambda match: _hexadecimal(match, "!"), name)


def _hexadecimal(match: re.Match[str], mark: str) -> str:
    return "".join(f"{mark}{byte:02x}" for byte in match[0].encode())
