"""Each column as the same text on both sides, made by the server's SQL there and by Spark's here.

Nothing of the codec takes part, so that a fault in it cannot hide itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from loader.model.table import Column
from loader.types.catalogue import type_of
from loader.types.column_type import Comparison

Row = tuple[str | None, ...]
"""The canonical text of each column of a row."""


def on_server(column: Column) -> str:
    """Return the MySQL expression for the column's canonical text, or for its bytes or its number."""
    return type_of(column).server_text.format(quoted(column.name))


def in_warehouse(column: Column) -> str:
    """Return the Spark expression for the column's canonical text."""
    return type_of(column).warehouse_text(column).format(quoted(column.name))


def comparison_of(column: Column) -> Comparison:
    """Return how the canonical texts of both sides are compared."""
    return type_of(column).comparison


def quoted(name: str) -> str:
    """Return a column name as an identifier of MySQL and of Spark."""
    return "`" + name.replace("`", "``") + "`"


def canonical_rows(comparisons: Iterable[Comparison], rows: Iterable[Sequence[Any]]) -> Iterator[Row]:
    """Yield rows as texts in the form that is equal on both sides, also from the bytes and numbers of a server."""
    ways = list(enumerate(comparisons))
    numbers = [(n, way is Comparison.SINGLE) for n, way in ways if way in {Comparison.SINGLE, Comparison.DOUBLE}]
    vectors = [n for n, way in ways if way is Comparison.VECTOR]
    for row in rows:
        texts = [value.hex().upper() if isinstance(value, bytes) else value for value in row]
        for n in vectors:
            texts[n] = _vector(texts[n])
        for n, single in numbers:
            texts[n] = _number(texts[n], single)
        yield tuple(texts)


def _vector(text: str | None) -> str | None:
    """Return a vector as the hex text of its bytes, as the server gives it. The warehouse has it as a list."""
    if text is None or not text.startswith("["):
        return text
    numbers = [float(number) for number in text[1:-1].split(",") if number]
    return struct.pack(f"<{len(numbers)}f", *numbers).hex().upper()


def _number(number: str | float | None, single: bool) -> str | None:
    if number is None:
        return None
    value = float(number)
    return repr(struct.unpack("f", struct.pack("f", value))[0] if single else value)
