"""Hints that name the newest known interval of a generation, so that readers need not list older intervals.

A hint is never trusted. A reader reads the document that it names and walks forward from there: each interval's stop is
the next one's start. A stale, lost or wrong hint costs requests and nothing else. The process that writes a document
also writes its hint. Readers write no hints.

<source>/<generation>/newest/planned.json, staged.json, recorded.json, swept.json, purged.json
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Literal

from loader.errors import StagedDataError
from loader.staging.document import Document
from loader.staging.layout import chain_folder
from loader.store.base import Store

_LOG = logging.getLogger(__name__)

Kind = Literal["planned", "staged", "recorded", "swept", "purged"]
"""`planned`, `staged`, `recorded`: the newest interval with a plan, a manifest or a published record.

`swept`, `purged`: all intervals before this one have lost their unpublished attempts, or their files.
"""


class Hint(Document):
    """The start seqno of an interval, and when its document was written, by the clock of the writer."""

    LATER = ("written_at",)

    start_seqno: int
    written_at: datetime | None = None


class Hints:
    """The hints of one source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def get(self, generation: str, kind: Kind) -> int | None:
        """Return the start seqno of a hint, or None if the hint is absent or unreadable."""
        found = self._find(generation, kind)
        return found.start_seqno if found else None

    def seconds_between(self, generation: str, earlier: Kind, later: Kind) -> float | None:
        """Return the time between two documents of the newest interval; None if their hints name different ones."""
        first, second = self._find(generation, earlier), self._find(generation, later)
        if not (first and second and first.written_at and second.written_at):
            return None
        if first.start_seqno != second.start_seqno:
            return None
        return max(0.0, (second.written_at - first.written_at).total_seconds())

    def _find(self, generation: str, kind: Kind) -> Hint | None:
        try:
            return Hint.find(self._store, self._key(generation, kind))
        except StagedDataError as error:
            _LOG.warning("a hint cannot be read, so the intervals are listed instead: %s", error)
            return None

    def put(self, generation: str, kind: Kind, start_seqno: int) -> None:
        """Write a hint. If two processes write at the same time, either hint may remain."""
        with self._store.writing(self._key(generation, kind)) as sink:
            sink.write(Hint(start_seqno=start_seqno, written_at=datetime.now(UTC)).canonical())

    def _key(self, generation: str, kind: Kind) -> str:
        return f"{chain_folder(self._source, generation)}/newest/{kind}.json"
