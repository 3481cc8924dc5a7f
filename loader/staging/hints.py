"""Hints that name the newest known interval of a generation, so that readers need not list older intervals.

A hint is never trusted. A reader reads the document that it names and walks forward from there: each interval's stop is
the next one's start. A stale, lost or wrong hint costs requests and nothing else. The process that writes a document
also writes its hint. Readers write no hints.

<source>/<generation>/newest/planned.json, staged.json, recorded.json, swept.json, purged.json
"""

from __future__ import annotations

import logging
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
    """The start seqno of an interval."""

    start_seqno: int


class Hints:
    """The hints of one source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def get(self, generation: str, kind: Kind) -> int | None:
        """Return the start seqno of a hint, or None if the hint is absent or unreadable."""
        try:
            found = Hint.find(self._store, self._key(generation, kind))
        except StagedDataError as error:
            _LOG.warning("a hint cannot be read, so the intervals are listed instead: %s", error)
            return None
        return found.start_seqno if found else None

    def put(self, generation: str, kind: Kind, start_seqno: int) -> None:
        """Write a hint. If two processes write at the same time, either hint may remain."""
        with self._store.writing(self._key(generation, kind)) as sink:
            sink.write(Hint(start_seqno=start_seqno).canonical())

    def _key(self, generation: str, kind: Kind) -> str:
        return f"{chain_folder(self._source, generation)}/newest/{kind}.json"
