"""Names and texts as they are written into Spark SQL. The only place that quotes."""

from __future__ import annotations

import re

from loader.model.table import TableName

# Catalogs make folders of names, and some join them with dots.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\.:%#?*\"<>|\[\]{}]|^\s|\s$|!(?=[0-9a-f]{2})")

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x00": "\\u0000"})


def identifier(name: str) -> str:
    """A name between backticks, with those inside it doubled."""
    return "`" + name.replace("`", "``") + "`"


def identifiers(names: tuple[str, ...]) -> str:
    """Several names, separated by commas."""
    return ", ".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """A string literal. Sessions of the loader do not substitute `${...}` (`loader.materialise.iceberg.warehouse`)."""
    return "'" + text.translate(_ESCAPES) + "'"


def table_identifier(catalog: str, table: TableName) -> str:
    """Return the whole name of a table of the source in a catalog, quoted."""
    return f"{namespace_identifier(catalog, table)}.{identifier(catalog_name(table.table))}"


def namespace_identifier(catalog: str, table: TableName) -> str:
    """Return the whole name of the namespace of a table in a catalog, quoted."""
    return f"{identifier(catalog)}.{identifier(catalog_name(table.schema))}"


def catalog_name(name: str) -> str:
    """Map a name of the source to one that every catalog can hold; two names never give the same one.

    A byte that a catalog could take for something else becomes `!` and two hex digits, and so does a space at either
    end. A `!` stays what it is unless two hex digits follow.
    """
    return _UNSAFE.sub(lambda found: "".join(f"!{byte:02x}" for byte in found[0].encode()), name)
