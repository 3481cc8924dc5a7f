"""The published record: a consistent view over all tables, and a shortcut past intervals in which a table was quiet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loader.materialise.chain import Chain
from loader.materialise.history import Applied
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest, Published, PublishedTable


def publish(chain: Chain, last: Manifest, results: Sequence[TableResult]) -> str:
    """Write the record of the interval `last`, which every table now has, or complete the one that is there; its key.

    A table that is further already, because it was loaded later or an old interval is run again, is not part of it,
    nor is one that is quarantined.
    """
    tables = {
        result.table: PublishedTable(snapshot=result.snapshot, applied=result.applied_seqno)
        for result in results
        if result.snapshot is not None and result.applied_seqno is not None and result.applied_seqno <= last.stop_seqno
    }
    behind = {result.table: result.applied_seqno or 0 for result in results if result.status == "quarantined"}
    record = Published(
        source=chain.source,
        generation=last.generation,
        stop=last.stop,
        stop_seqno=last.stop_seqno,
        tables=tables,
        behind=behind,
        made=chain.made(last.stop_seqno),
        committed_at=chain.committed_at(last.stop_seqno),
    )
    return chain.publish(last, record)


def known_through(record: Published | None, table: TableName, applied: Applied) -> int:
    """The seqno up to which a table lacks nothing.

    That is its applied position or, when the record is of its very newest commit, the record's stop: nothing for the
    table lay in between. A table that was rolled back or loaded again has another newest commit, and the record does
    not count.
    """
    entry: Mapping[str, PublishedTable] = record.tables if record else {}
    found = entry.get(str(table))
    if record is None or found is None:
        return applied.seqno
    same = (found.snapshot, found.applied) == (applied.snapshot, applied.seqno)
    return max(applied.seqno, record.stop_seqno) if same else applied.seqno
