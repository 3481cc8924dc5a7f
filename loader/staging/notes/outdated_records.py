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


def note_outdated(store: Store, source: str, generation: str) -> None:
    """Note that a table of the newest published record, if any, is going to have another newest commit, or has it."""
    if newest := PlanChain(store, source).newest_published(generation):
        stop = newest[1].stop_seqno
        note = OutdatedRecord(source=source, generation=generation, stop_seqno=stop)
        store.create(outdated_key(source, generation, stop), note.canonical())


def is_outdated(store: Store, record: Published) -> bool:
    """Return whether a table of a record may have a newer commit that no merge made."""
    return OutdatedRecord.find(store, outdated_key(record.source, record.generation, record.stop_seqno)) is not None
