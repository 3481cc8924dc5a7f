"""The valid sizes of columns, by type.

Kernels write as many digits as a column's size says, so an invalid size would write beyond a buffer. Sources: MySQL
manual, "Data Types"; MariaDB manual, "DECIMAL": there the scale may equal the precision, and so it may here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loader.errors import DataError

if TYPE_CHECKING:
    from loader.model.table import Column, TableSchema

MOST_DIGITS = 65
"""The most digits of a DECIMAL."""

_SIZES = {
    "decimal": (1, MOST_DIGITS),
    "bit": (1, 64),
    "binary": (0, 255),
    "datetime": (0, 6),
    "timestamp": (0, 6),
    "time": (0, 6),
}
"""The smallest and the largest `Column.size`; 0 for all other types."""

_WORD = re.compile(r"[a-z0-9_ ]*")
_LABELS = {"enum": 65535, "set": 64}


def check_ranges(schema: TableSchema) -> None:
    """Check that the columns of a table are possible.

    Raises:
        DataError: a size, a label count or a key is invalid for its type.
    """
    if why := explain_invalid_schema(schema):
        raise DataError(
            "the definition of a table is invalid",
            why=why,
            hint=f"compare with SHOW CREATE TABLE on the server itself, without a proxy; then {schema.name.exclusion}",
            table=schema.name,
        )


def explain_invalid_schema(schema: TableSchema) -> str:
    """Return which column or key of the schema is invalid, and why; empty if all are valid."""
    for column in schema.columns:
        if why := _fault(column):
            return f"column {column.name!r} is {column.type}({column.size},{column.scale}): {why}"
    names = {column.name for column in schema.columns}
    if len(names) < len(schema.columns):
        return "two columns have the same name"
    if unknown := set(schema.key) - names:
        return f"the key has columns that the table does not have: {', '.join(sorted(unknown))}"
    return "" if len(set(schema.key)) == len(schema.key) else "the key has a column twice"


def _fault(column: Column) -> str:
    if not _WORD.fullmatch(column.type) or not _WORD.fullmatch(column.charset):
        return f"{column.type!r} or {column.charset!r} is not the name of a type or of a character set"
    least, most = _SIZES.get(column.type, (0, 0))
    if not least <= column.size <= most:
        return f"its size can be {least} to {most}"
    if not 0 <= column.scale <= (column.size if column.type == "decimal" else 0):
        return f"its scale can be 0 to {column.size if column.type == 'decimal' else 0}"
    if len(column.labels) > (most_labels := _LABELS.get(column.type, 0)):
        return f"it has {len(column.labels)} labels and can have {most_labels}"
    return ""
