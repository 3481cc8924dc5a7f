"""Names and texts as they are written into Spark SQL. The only place that quotes."""

from __future__ import annotations

import re

from loader.errors import UnsupportedError
from loader.model.table import TableName

# Catalogs make folders of names, and some join them with dots.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\.:%#?*\"<>|\[\]{}]")

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x00": "\\u0000"})


def identifier(name: str) -> str:
    """A name between backticks, with those inside it doubled."""
    return "`" + name.replace("`", "``") + "`"


def identifiers(names: tuple[str, ...]) -> str:
    """Several names, separated by commas."""
    return ", ".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """A string literal. Sessions of the loader do not substitute `${...}` (`loader.materialise.warehouse`)."""
    return "'" + text.translate(_ESCAPES) + "'"


def check_name(name: TableName) -> None:
    """Refuse a table whose name not every catalog can hold as a folder.

    Raises:
        UnsupportedError: naming the table.
    """
    for part in (name.schema, name.table):
        if not part or _UNSAFE.search(part) or part != part.strip():
            raise UnsupportedError(
                f"the warehouse cannot hold a table with the name {part!r}",
                why="catalogs make a folder of the name",
                hint="exclude the table from the captured tables, or rename it",
                table=name,
            )
