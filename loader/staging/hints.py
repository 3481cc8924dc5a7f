"""Hints that name the newest known interval of a generation, so that nobody lists those before it.

A hint is never trusted: whoever reads one reads the document that it names, and goes on from there by the stop of each
interval, which is the start of the next. So it may be stale, lost or wrong: that costs requests, and nothing else. Who
writes the document writes the hint; who only reads writes nothing.

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
"""What the newest interval has: a plan, a manifest, or a published record. Or what all intervals before one have lost:
attempts that were not published, or their files."""


class Hint(Document):
    """The start seqno of an interval."""

    start_seqno: int


class Hints:
    """The hints of one source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def get(self, generation: str, kind: Kind) -> int | None:
        """Return the start seqno that was noted last; None where there is none, or none that can be read."""
        try:
            found = Hint.find(self._store, self._key(generation, kind))
        except StagedDataError as error:
            _LOG.warning("the intervals are listed, since a hint cannot be read: %s", error)
            return None
        return found.start_seqno if found else None

    def put(self, generation: str, kind: Kind, start_seqno: int) -> None:
        """Note an interval. Of two processes that do so at once either may be the last."""
        with self._store.writing(self._key(generation, kind)) as sink:
            sink.write(Hint(start_seqno=start_seqno).canonical())

    def _key(self, generation: str, kind: Kind) -> str:
        return f"{chain_folder(self._source, generation)}/newest/{kind}.json"
