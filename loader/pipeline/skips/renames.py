"""The names of tables that lack rows, after the renames in the interval of the skipped transaction."""

from __future__ import annotations

from collections.abc import Iterable

from loader.materialise.plan.skipped_names import Names, iter_renames
from loader.model.table import TableName
from loader.staging.documents import Manifest


def names_after(manifest: Manifest, tables: Iterable[TableName], since: int) -> Names:
    """Return the names at the stop of an interval of the tables that have these names at a seqno in it."""
    names = dict.fromkeys(tables, 0)
    for seqno, renamed in iter_renames(manifest):
        if seqno > since and renamed.old in names:
            del names[renamed.old]
            names[renamed.new] = seqno
    return {str(name): names[name] for name in sorted(names, key=str)}
