"""The published record: a consistent view over all tables.

It also spares later runs from reading intervals without records of a table.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Literal, cast

from loader.errors import LoaderError
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.published import PostponedTable, Published, PublishedTable

if TYPE_CHECKING:
    from loader.materialise.iceberg.table_metadata import Applied  # which imports pyspark


def publish(chain: Chain, last: Manifest, results: Sequence[TableResult], warehouse: str = "") -> str:
    """Write the published record of the interval `last`, or complete the existing record. Return its key.

    `warehouse`: see Published.

    The record lists quarantined and postponed tables as behind, and tables after the interval's stop as ahead.

    Raises:
        LoaderError: another table is before the interval's stop. Nothing was written.
    """
    for result in results:
        _check_complete(result, last)
    tables = {
        result.table: PublishedTable(snapshot=result.snapshot, applied=result.applied_seqno)
        for result in results
        if result.snapshot is not None and result.applied_seqno is not None and not _is_ahead(result, last)
        if not is_behind(result, last)
    }
    behind = [result for result in results if is_behind(result, last)]
    names = {*tables, *(result.table for result in behind)}
    skipped = chain.skipped_names(last.stop_seqno, tables, warehouse)
    sums = _staged_sums(chain, last.stop_seqno, names)
    record = Published(
        source=chain.source,
        generation=last.generation,
        stop=last.stop,
        stop_seqno=last.stop_seqno,
        tables=tables,
        behind={result.table: _seqno_behind(result) for result in behind},
        postponed={result.table: _postponed_table(result) for result in behind if result.postponed},
        skipped={key: tuple(names) for key, names in skipped.items()},
        named_at={key: renamed for key, names in skipped.items() if (renamed := {n: s for n, s in names.items() if s})},
        ahead=tuple(sorted(one.table for one in results if _is_ahead(one, last) and not is_behind(one, last))),
        made=chain.creation_seqnos(last.stop_seqno, names),
        committed_at=chain.newest_commit_time(last.stop_seqno),
        rows={table: (inserts, updates, deletes) for table, (inserts, updates, deletes, _) in sums.items()},
        staged_bytes={table: size for table, (_, _, _, size) in sums.items()},
        warehouse=warehouse,
    )
    return chain.publish(last, record)


def _staged_sums(chain: Chain, target: int, tables: Container[str]) -> dict[str, tuple[int, int, int, int]]:
    """Return inserts, updates, deletes and bytes of the staged files of a record's tables, also of those behind.

    Return nothing if the newest record is beyond the target.
    """
    record = chain.newest_published()
    if record is not None and record.stop_seqno > target:
        return {}
    rows, sizes = (record.rows, record.staged_bytes) if record else ({}, {})
    found = {table: (*counts, sizes.get(table, 0)) for table, counts in rows.items()}
    for manifest in chain.intervals_between(record.stop_seqno if record else 0, target):
        for file in manifest.files:
            inserts, updates, deletes, size = found.get(str(file.name), (0, 0, 0, 0))
            found[str(file.name)] = (
                inserts + file.inserts, updates + file.updates, deletes + file.deletes, size + file.bytes
            )  # fmt: skip
    return {table: sums for table, sums in sorted(found.items()) if table in tables}


def is_behind(result: TableResult, last: Manifest) -> bool:
    """Return whether a record at the stop of `last` lists a table as behind.

    A postponed table without changes since its newest commit is not behind.
    """
    return result.status == "quarantined" or (result.postponed and (result.complete_through or 0) < last.stop_seqno)


def _is_ahead(result: TableResult, last: Manifest) -> bool:
    """Return whether a table is after the stop of `last`."""
    return (result.applied_seqno or 0) > last.stop_seqno


def _seqno_behind(result: TableResult) -> int:
    return (result.complete_through if result.postponed else result.applied_seqno) or 0


def _postponed_table(result: TableResult) -> PostponedTable:
    return PostponedTable(
        why=cast("Literal['paused', 'waiting', 'not_due']", result.status),
        snapshot=result.snapshot,
        applied=result.applied_seqno or 0,
        position=result.position,
        waits_for=result.waits_for,
        due=result.due,
    )


def _check_complete(result: TableResult, last: Manifest) -> None:
    """Verify that a table has every record up to the stop. Later runs rely on it and do not read the log before it."""
    if is_behind(result, last) or (result.complete_through or 0) >= last.stop_seqno:
        return
    raise LoaderError(
        "the interval cannot be published: a table may lack records up to its stop",
        why=f"the table is {result.status} and complete up to seqno {result.complete_through}, not {last.stop_seqno}",
        hint=f"{TableName.parse(result.table).load_again}; this is a fault of the loader, please report it",
        table=result.table,
        position=last.stop,
    )


def complete_seqno(record: Published | None, table: TableName, applied: Applied) -> int:
    """Return the seqno up to which a table has every record.

    It is the applied position. If the record holds the table's newest commit, it is the record's stop, or the seqno
    that the record has for a postponed table: the log had no records of the table in between. A table that was rolled
    back or loaded again has another newest commit, so the record does not count.
    """
    if record is None or not has_newest_commit(record, table, applied):
        return applied.seqno
    return max(applied.seqno, record.behind.get(str(table), record.stop_seqno))


def has_newest_commit(record: Published | None, table: TableName, applied: Applied) -> bool:
    """Return whether a record holds the newest commit of a table. It does not after a load or a rollback."""
    found = (record.tables.get(str(table)) or record.postponed.get(str(table))) if record else None
    return found is not None and (found.snapshot, found.applied) == (applied.snapshot, applied.seqno)
