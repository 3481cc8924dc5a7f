"""The names of tables that lack rows, after the renames in the interval of the skipped transaction."""

from __future__ import annotations

from loader.materialise.plan.skipped_names import Names, follow_renames, iter_renames, possible_names
from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.notes.skips import SkipRecord


def names_after(manifest: Manifest, skip: SkipRecord) -> Names:
    """Return the names of the tables of a skip at the stop of the interval that left it out.

    Args:
        manifest: of the interval. It can be of another server than the skip; see `possible_names`.
        skip: the record.
    """
    tables = map(TableName.parse, skip.tables)
    if manifest.generation == skip.generation:
        later = ((seqno, renamed) for seqno, renamed in iter_renames(manifest) if seqno > skip.seqno)
        names = follow_renames(dict.fromkeys(tables, 0), later)
    else:
        names = possible_names(manifest, tables)
    return {str(name): names[name] for name in sorted(names, key=str)}
