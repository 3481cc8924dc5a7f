"""Published records whose snapshots may not be the newest ones any more, although no merge made newer ones.

An initial load, an adoption or a replay commits to a table without a record. A merge that looked at the table before
may publish its record after that. A quiet interval then needs a run that reads the tables: it must not repeat the
snapshots of that record. So the note is about all records up to the newest staged interval. The run behind a later
record begins after that interval is staged, and sees the commit.

The note is made before and after the commit, because intervals may be staged in between. It decides whether a run has
work, never what is in a table.
"""

from __future__ import annotations

from loader.staging.chain import PlanChain
from loader.staging.document import Document
from loader.staging.documents import Manifest
from loader.staging.layout import outdated_folder, outdated_key
from loader.store.base import Store


class OutdatedRecord(Document):
    """The generation and the seqno up to which its published records may be outdated."""

    source: str
    generation: str
    stop_seqno: int


class OutdatedNotes:
    """Makes the notes of one run. Several threads may use it."""

    def __init__(self, chain: PlanChain, generation: str) -> None:
        self._chain = chain
        self._generation = generation
        self._noted: Manifest | None = None

    def add(self) -> None:
        """Note that a table is going to have another newest commit, or has it.

        Manifests are read from the last one on that this run noted, because a run commits to many tables.
        """
        newest = self._newest_manifest()
        if newest is None or newest == self._noted:
            return
        source, stop = self._chain.source, newest.stop_seqno
        note = OutdatedRecord(source=source, generation=self._generation, stop_seqno=stop)
        self._chain.store.create(outdated_key(source, self._generation, stop), note.canonical())
        self._noted = newest

    def _newest_manifest(self) -> Manifest | None:
        if self._noted is None:
            return self._chain.newest_manifest(self._generation)
        later = list(self._chain.manifests_from(self._generation, self._noted.stop_seqno))
        return later[-1] if later else self._noted


def is_outdated(store: Store, source: str, generation: str, stop_seqno: int) -> bool:
    """Return whether a record at this stop may lack a commit that no merge made, whoever publishes it."""
    after = f"{stop_seqno - 1:020d}"
    names, _ = store.folders_after(f"{outdated_folder(source, generation)}/", after)
    return bool(names)
