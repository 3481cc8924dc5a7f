"""Rows of a row event, straight from its staged lines: for events without absent, unreadable or escaped values.

Almost all events are such. Their lines are split by the csv module, which is ten times as fast as one object per value.
Staged text has the escapes that a listing shows, so most texts are copied.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from typing import Any

from loader.model.table import TableSchema
from loader.reader.dialect import HEAD_FIELDS
from loader.reader.events import RowsEvent, UpdateRowsEvent

_OP, _OFFSET, _ABSENT = 0, 2, 4
_NULL = "\\N"
"""NULL in a staged line. A text of these characters has its backslash doubled."""

Change = tuple[int, list[str] | None, list[str] | None]
"""Row offset, and the fields of the images before and after."""

csv.field_size_limit(sys.maxsize)


def plain_changes(event: RowsEvent) -> list[Change] | None:
    """Return the changes of an event; None if it has absent or unreadable values, or none at all."""
    if event.error or event.schema is None or event.unreadable:
        return None
    lines = event.staged.decode("utf-8").split("\n")
    lines.pop()
    records = list(csv.reader(lines, strict=True))
    width = HEAD_FIELDS + len(event.schema.columns)
    if any(record[_ABSENT] or len(record) != width for record in records):
        return None
    return list(_paired(records, update=isinstance(event, UpdateRowsEvent)))


def _paired(records: list[list[str]], *, update: bool) -> Iterator[Change]:
    before: list[str] | None = None
    for record in records:
        fields = record[HEAD_FIELDS:]
        if record[_OP] == "D":
            before = fields
            if update:
                continue
            yield int(record[_OFFSET] or 0), fields, None
        else:
            yield int(record[_OFFSET] or 0), before, fields
        before = None


class PlainColumns:
    """Converts the fields of one table's rows.

    Args:
        schema: of the table.
        convert: makes a function for a column, from a field that is not NULL to what is shown.
    """

    def __init__(self, schema: TableSchema, convert: Callable[[Any], Callable[[str], Any]]) -> None:
        self.schema = schema
        self.names = [column.name for column in schema.columns]
        self._converts = [convert(column) for column in schema.columns]

    def values(self, fields: list[str], null: Any) -> list[Any]:
        """Return the converted values; `null` for NULL."""
        return [
            null if field == _NULL else convert(field) for convert, field in zip(self._converts, fields, strict=True)
        ]
