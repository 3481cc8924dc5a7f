"""Each column as the same text on both sides, made by the server's SQL there and by Spark's here.

Nothing of the codec takes part, so that a fault in it cannot hide itself.
"""

from __future__ import annotations

from loader.model.table import Column
from loader.types.catalogue import type_of
from loader.types.column_type import Comparison


def on_server(column: Column) -> str:
    """Return the MySQL expression for the column's canonical text."""
    return type_of(column).server_text.format(_quoted(column.name))


def in_warehouse(column: Column) -> str:
    """Return the Spark expression for the column's canonical text."""
    return type_of(column).warehouse_text(column).format(_quoted(column.name))


def comparison_of(column: Column) -> Comparison:
    """Return how the canonical texts of both sides are compared."""
    return type_of(column).comparison


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
