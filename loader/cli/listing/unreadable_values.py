"""Counts what a listing cannot read, and raises an error at its end."""

from __future__ import annotations

from collections.abc import Iterable

from loader.cli.output import Output
from loader.errors import DataError
from loader.model.table import TableName
from loader.reader.events import Event, RowsEvent


class UnreadableCount:
    """Values shown as hex and row events that could not be read."""

    def __init__(self) -> None:
        self._values = 0
        self._events = 0
        self._first: Event | None = None

    def add(self, event: Event) -> None:
        """Count the unreadable values of an event, or the event."""
        if isinstance(event, RowsEvent) and (event.error or event.unreadable):
            self._values += event.unreadable
            self._events += event.error is not None
            self._first = self._first or event

    def check(self) -> None:
        """Raise DataError if anything was unreadable."""
        if self._first:
            header = self._first.header
            refuse_unreadable(self._values, self._events, file=header.file, position=header.position)


def refuse_unreadable(values: int, events: int, **first: object) -> None:
    """Raise the error of a listing with unreadable parts, unless both counts are 0. `first`: place of the first one.

    Raises:
        DataError: values or row events could not be read.
    """
    counts = [
        f"{number:,} {thing if number == 1 else thing + 's'}"
        for number, thing in ((values, "value"), (events, "row event"))
        if number
    ]
    if counts:
        raise DataError(
            f"{' and '.join(counts)} could not be read",
            why="values are shown as hex, row events without rows; everything else is listed",
            hint="give the columns and character sets with --schema, or compare with mysqlbinlog -vv",
            **first,
        )


def note_assumed(out: Output, tables: Iterable[TableName]) -> None:
    """Print a note about tables whose times in an old format were taken to have no fractions."""
    if names := ", ".join(sorted(map(str, tables))):
        out.note(f"note: times in an old format of {names} are read without fractions; --schema tells their digits")
