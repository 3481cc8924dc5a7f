"""Names of a table's columns in the frames of this package. Pure.

They are `c0`, `c1`, ... by place, so that no name of the source can meet a name of the loader.
"""

from __future__ import annotations

from loader.model.table import TableSchema


def places(schema: TableSchema) -> tuple[str, ...]:
    """Return the names of the columns, in their order."""
    return tuple(f"c{place}" for place in range(len(schema.columns)))


def key_places(schema: TableSchema) -> tuple[str, ...]:
    """Return the names of the key's columns, in key order."""
    names = [column.name for column in schema.columns]
    return tuple(f"c{names.index(name)}" for name in schema.key)
