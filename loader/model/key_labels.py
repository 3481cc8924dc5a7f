"""Keys in which two values of an ENUM or SET have the same text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.errors import UnsupportedError

if TYPE_CHECKING:
    from loader.model.table import TableSchema


def check_key_labels(schema: TableSchema) -> None:
    """Check that no column of a key has an empty label. The warehouse could not distinguish two rows of the server.

    Raises:
        UnsupportedError: a column has one. The invalid value 0 of an ENUM is also an empty text, and two values of a
            SET can differ in the empty label alone.
    """
    named = [column.name for column in schema.columns if column.name in schema.key and "" in column.labels]
    if named:
        raise UnsupportedError(
            "two keys of the table can have the same text",
            why=f"in the key, these columns of type ENUM or SET have an empty label: {', '.join(named)}",
            hint=f"remove the label from the columns; or {schema.name.exclusion}",
            table=schema.name,
        )
