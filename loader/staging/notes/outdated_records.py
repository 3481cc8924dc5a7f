"""Published records whose snapshots are not the newest ones any more, although no merge made newer ones.

An initial load, an adoption or a replay commits to a table without a record. A quiet interval then needs a run that
reads the tables: it must not repeat the snapshots of the newest record. The note is made before and after the commit,
because a run may publish another record in between. It decides whether a run has work, never what is in a table.
"""

from __future__ import annotations

from loader.staging.chain import PlanChain
from loader.staging.document import Document
from loader.staging.layout import outdated_key
from loader.staging.published import Published
from loader.store.base import Store


class OutdatedRecord(Document):
    """The generation and stop seqno of a published record."""

    source: str
    generation: str
    stop_seqno: int


class OutdatedNotes:
    """Makes the notes of one run. Several threads may use it."""

    def __init__(self, chain: PlanChain, generation: str) -> None:
        self._chain = chain
        self._generation = generation
        self._noted: tuple[int, Published] | None = None

    def add(self) -> None:
        """Note that a table of the newest published record, if any, is going to have another newest commit, or has it.

        Records are read from the last one on that this run noted, because a run commits to many tables.
        """
        newest = self._chain.newest_published(self._generation, self._noted)
        if newest is None or newest == self._noted:
            return
        source, stop = self._chain.source, newest[1].stop_seqno
        note = OutdatedRecord(source=source, generation=self._generation, stop_seqno=stop)
        self._chain.store.create(outdated_key(source, self._generation, stop), note.canonical())
        self._noted = newest


def is_outdated(store: Store, record: Published) -> bool:
    """Return whether a table of a record may have a newer commit that no merge made."""
    return OutdatedRecord.find(store, outdated_key(record.source, record.generation, record.stop_seqno)) is not None
