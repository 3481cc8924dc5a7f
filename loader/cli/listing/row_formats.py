"""Formats the rows of a table with the listing kernels, as text or as JSON.

The kernels cannot list unreadable values. Rows with such values are listed value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loader.binlog.listing.rows import NO_ROOM, SLACK, list_rows
from loader.model.table import TableSchema
from loader.reader.events import RowsEvent, UpdateRowsEvent

_OUT_BYTES = 64 * 1024


class ShownColumn(NamedTuple):
    """How a listing shows a column.

    Attributes:
        kind: of its values; see loader.binlog.listing.fields.
        after, before: text in front of a value of the after image, and of the before image.
    """

    kind: int
    after: str
    before: str = ""


class RowFormat:
    """The format of the rows of one table.

    Attributes:
        columns: int64 (columns, 4), fields loader.binlog.listing.rows.KIND to END.
        names: uint8, the texts before values.
    """

    def __init__(self, shown: list[ShownColumn], *, json: bool) -> None:
        self._json = json
        texts, rows = bytearray(), []
        for column in shown:
            ends = [len(texts)]
            for text in (column.after, column.before):
                texts += text.encode()
                ends.append(len(texts))
            rows.append([column.kind, *ends])
        self.columns: NDArray[np.int64] = np.array(rows, np.int64).reshape(len(rows), 4)
        self.names = np.frombuffer(texts + bytes(8), np.uint8)

    def rows(self, event: RowsEvent) -> str | None:
        """Return the rows of an event; None if one has an unreadable value."""
        lines = np.frombuffer(bytearray(event.staged) + bytes(SLACK), np.uint8)
        update = isinstance(event, UpdateRowsEvent)
        size = _OUT_BYTES
        while True:
            out = np.empty(size, np.uint8)
            end = list_rows(out, lines, len(event.staged), update, self.columns, self.names, self._json)
            if end != NO_ROOM:
                return None if end < 0 else str(out[:end].data, "utf-8")
            size *= 4


class RowFormats:
    """The formats of all tables of a listing.

    Args:
        shown: returns how the columns of a table are shown.
        json: whether rows are JSON.
    """

    def __init__(self, shown: Callable[[TableSchema], list[ShownColumn]], *, json: bool) -> None:
        self._shown = shown
        self._json = json
        self._formats: dict[int, tuple[TableSchema, RowFormat]] = {}

    def of(self, schema: TableSchema) -> RowFormat:
        """Return the format of a table."""
        _, found = self._formats.get(id(schema), (None, None))
        if found is None:
            found = RowFormat(self._shown(schema), json=self._json)
            self._formats[id(schema)] = schema, found  # a kept schema keeps its id
        return found

    def rows(self, event: RowsEvent) -> str | None:
        """Return the rows of an event; None if they have to be listed value by value."""
        if event.error or event.schema is None:
            return None
        return self.of(event.schema).rows(event)
