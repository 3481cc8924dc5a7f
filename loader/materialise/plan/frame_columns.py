"""Names of a table's columns in Spark data frames. Pure.

The names are `c0`, `c1`, ... in column order. So no column name of the source can collide with a name of the loader.
"""

from __future__ import annotations

from loader.model.table import TableSchema


def places(schema: TableSchema) -> tuple[str, ...]:
    """Return the frame names of all columns, in column order."""
    return tuple(f"c{place}" for place in range(len(schema.columns)))


def key_places(schema: TableSchema) -> tuple[str, ...]:
    """Return the frame names of the key columns, in key order."""
    names = [column.name for column in schema.columns]
    return tuple(f"c{names.index(name)}" for name in schema.key)
