"""The published record: a consistent view over all tables, and a shortcut past intervals in which a table was quiet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loader.errors import LoaderError
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest, Published, PublishedTable

if TYPE_CHECKING:
    from loader.materialise.iceberg.table_metadata import Applied  # which imports pyspark


def publish(chain: Chain, last: Manifest, results: Sequence[TableResult]) -> str:
    """Write the record of the interval `last`, which every table now has, or complete the one that is there; its key.

    A table that is further already, because it was loaded later or an old interval is run again, is not part of it,
    nor is one that is quarantined.

    Raises:
        LoaderError: a table is short of the interval's stop and not quarantined. Nothing was written.
    """
    for result in results:
        _check_complete(result, last)
    tables = {
        result.table: PublishedTable(snapshot=result.snapshot, applied=result.applied_seqno)
        for result in results
        if result.snapshot is not None and result.applied_seqno is not None and result.applied_seqno <= last.stop_seqno
        if result.status != "quarantined"
    }
    behind = {result.table: result.applied_seqno or 0 for result in results if result.status == "quarantined"}
    record = Published(
        source=chain.source,
        generation=last.generation,
        stop=last.stop,
        stop_seqno=last.stop_seqno,
        tables=tables,
        behind=behind,
        made=chain.creation_seqnos(last.stop_seqno, {*tables, *behind}),
        committed_at=chain.newest_commit_time(last.stop_seqno),
    )
    return chain.publish(last, record)


def _check_complete(result: TableResult, last: Manifest) -> None:
    """A record says of every table in it that nothing up to its stop is missing, so a run may skip reading the log."""
    if result.status == "quarantined" or (result.complete_through or 0) >= last.stop_seqno:
        return
    raise LoaderError(
        "the interval cannot be published: a table is not known to hold every record up to its stop",
        why=f"it is {result.status} and complete up to seqno {result.complete_through}, not {last.stop_seqno}",
        hint=f"{TableName.parse(result.table).load_again}; this is a fault of the loader, please report it",
        table=result.table,
        position=last.stop,
    )


def complete_seqno(record: Published | None, table: TableName, applied: Applied) -> int:
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
