"""Keys in which two values of an ENUM or SET have the same text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loader.errors import UnsupportedError

if TYPE_CHECKING:
    from loader.model.table import TableSchema


def check_key_labels(schema: TableSchema) -> None:
    """Check that the warehouse can distinguish all keys of the server.

    Raises:
        UnsupportedError: a column of the key has an empty label, or a label twice. The invalid value 0 of an ENUM is
            also an empty text, and two values of a SET can differ in the empty label alone. Outside strict mode,
            servers accept a label twice, and store question marks for characters that the column cannot hold.
    """
    named = [column.name for column in schema.columns if column.name in schema.key and _is_ambiguous(column.labels)]
    if named:
        raise UnsupportedError(
            "two keys of the table can have the same text",
            why=f"an ENUM or SET in the key has an empty label, or a label twice: {', '.join(named)}",
            hint=f"change the labels of the columns; or {schema.name.exclusion}",
            table=schema.name,
        )


def _is_ambiguous(labels: Sequence[str]) -> bool:
    return "" in labels or len(set(labels)) < len(labels)
