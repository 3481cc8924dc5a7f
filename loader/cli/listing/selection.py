"""What a listing shows, and in which form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from loader.cli.listing.event_templates import Sample
from loader.cli.listing.row_formats import RowFormats
from loader.reader.events import DeleteRowsEvent, Event, RowsEvent, UpdateRowsEvent


class Form(Protocol):
    """The form of a listing: text or JSON."""

    formats: RowFormats
    json: bool

    def text(self, event: Event) -> str:
        """Return the listing of an event, with line feeds."""

    def sample(self, event: Event, *, fresh: bool) -> Sample:
        """Return the listing of an event without its rows. `fresh`: it is the first listed one of its transaction."""

    def resume(self, seqno: int) -> None:
        """Note that events up to this transaction are listed."""


@dataclass(frozen=True)
class Selection:
    """The events to list.

    Attributes:
        only_rows: nothing but row events of wanted tables.
        operations: of row events: letters of I, U and D.
        limit: most transactions; 0 for all.
    """

    only_rows: bool
    operations: str
    limit: int

    def has(self, event: Event) -> bool:
        """Return whether an event is to be listed, within the limit."""
        if not self.only_rows:
            return True
        if not isinstance(event, RowsEvent) or not (event.schema or event.error):
            return False
        letter = "U" if isinstance(event, UpdateRowsEvent) else "D" if isinstance(event, DeleteRowsEvent) else "I"
        return letter in self.operations
