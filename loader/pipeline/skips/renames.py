"""The names of tables that lack rows, after the renames in the interval of the skipped transaction."""

from __future__ import annotations

from collections.abc import Iterable

from loader.materialise.plan.ddl_events import read_barrier
from loader.model.table import TableName
from loader.schema.changes import Renamed
from loader.staging.documents import Manifest


def names_after(manifest: Manifest, tables: Iterable[TableName], since: int) -> set[TableName]:
    """Return the names at the stop of an interval of the tables that have these names at a seqno in it."""
    names = set(tables)
    for barrier in sorted(manifest.barriers, key=lambda one: one.seqno):
        for change in read_barrier(barrier) if barrier.seqno > since else ():
            if isinstance(change, Renamed) and change.old in names:
                names = names - {change.old} | {change.new}
    return names
