"""Finds the newest initial load of a table. A replay must not compare the table with log before it.

The load read the rows from the server. The log before it may lack changes: skipped transactions, intervals that were
extracted without the table, and statements in sessions with sql_log_bin=0.
"""

from __future__ import annotations

from dataclasses import dataclass

from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName


@dataclass(frozen=True)
class NewestLoad:
    """The position of an initial load, or of an adoption.

    The rows may include changes after it. The log has a record of each of these, and they were merged after the load.
    """

    seqno: int
    position: str


def find_newest_load(chain: Chain, table: TableName, metadata: TableMetadata, applied: Applied) -> NewestLoad | None:
    """Return the newest load in the ancestry of main; None if the log created the table, and it was never loaded.

    If the commit of the load has expired, return the newest load that is noted in the store.

    Args:
        chain: the intervals of the source.
        table: the table.
        metadata: of the table.
        applied: its applied position.
    """
    for one in metadata.applied_positions():
        if one.loaded:
            return NewestLoad(one.seqno, one.position)
    *_, oldest = metadata.ancestry(metadata.head)
    manifest = chain.newest_applied_load(table, applied.seqno) if oldest.parent is not None else None
    return NewestLoad(manifest.start_seqno, manifest.start) if manifest else None
