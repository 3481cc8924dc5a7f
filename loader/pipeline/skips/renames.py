"""The names of tables that lack rows, after the renames in the interval of the skipped transaction."""

from __future__ import annotations

from collections.abc import Iterable

from loader.materialise.plan.skipped_names import iter_renames
from loader.model.table import TableName
from loader.staging.documents import Manifest


def names_after(manifest: Manifest, tables: Iterable[TableName], since: int) -> set[TableName]:
    """Return the names at the stop of an interval of the tables that have these names at a seqno in it."""
    names = set(tables)
    for seqno, renamed in iter_renames(manifest):
        if seqno > since and renamed.old in names:
            names = names - {renamed.old} | {renamed.new}
    return names
