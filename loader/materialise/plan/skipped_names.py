"""The names of tables that lack rows which operators skipped, after later renames. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from operator import itemgetter

from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import read_barrier
from loader.model.table import TableName
from loader.schema.changes import Renamed
from loader.staging.documents import Manifest
from loader.staging.notes.skips import SkipRecord

IsLoaded = Callable[[TableName, int, int], bool]
"""Returns whether a table was loaded after the transaction with a seqno, and before the one with another."""
Names = dict[str, int]
"""The names of tables, `schema.table`, each with the seqno of the rename that gave it; 0 without a rename."""


def follow_names(
    known: Mapping[str, Mapping[str, int]],
    reached: int,
    manifests: Iterable[Manifest],
    skip_of: Callable[[str], SkipRecord],
    is_loaded: IsLoaded,
) -> dict[str, Names]:
    """Return the names of the tables that lack rows, by key of the skip, at the stop of the last interval.

    A table that was loaded again before it was renamed lacks no rows under its new name.

    Args:
        known: the same at the seqno `reached`.
        reached: a seqno.
        manifests: intervals in order. They may begin before `reached`.
        skip_of: returns a record by its key.
        is_loaded: see IsLoaded.
    """
    found = {
        key: (reached, {TableName.parse(name): seqno for name, seqno in names.items()}) for key, names in known.items()
    }
    for manifest in manifests:
        for key in manifest.skips:
            found.setdefault(key, _names_in(manifest, skip_of(key)))
        for seqno, renamed in iter_renames(manifest):
            for key, (since, names) in found.items():
                if seqno > since and renamed.old in names:
                    # An earlier load was of another table that had the name then.
                    named = names.pop(renamed.old)
                    if not is_loaded(renamed.old, max(skip_of(key).seqno, named), seqno):
                        names[renamed.new] = seqno
    return {
        key: {str(name): names[name] for name in sorted(names, key=str)} for key, (_, names) in sorted(found.items())
    }


def iter_renames(manifest: Manifest) -> Iterator[tuple[int, Renamed]]:
    """Yield the renames in an interval with their seqnos, in log order. An unreadable statement stops its tables."""
    for barrier in sorted(manifest.barriers, key=lambda one: one.seqno):
        with suppress(UnsupportedError):
            yield from ((barrier.seqno, one) for one in read_barrier(barrier) if isinstance(one, Renamed))


def possible_names(manifest: Manifest, tables: Iterable[TableName]) -> dict[TableName, int]:
    """Return all names that tables can have at the stop of an interval in which they have these names at some seqno."""
    names = dict.fromkeys(tables, 0)
    for _, renames in groupby(iter_renames(manifest), key=itemgetter(0)):
        names |= follow_renames(names, renames)
    return names


def follow_renames(names: Mapping[TableName, int], renames: Iterable[tuple[int, Renamed]]) -> dict[TableName, int]:
    """Return the names that tables have after renames with their seqnos."""
    found = dict(names)
    for seqno, renamed in renames:
        if renamed.old in found:
            del found[renamed.old]
            found[renamed.new] = seqno
    return found


def _names_in(manifest: Manifest, skip: SkipRecord) -> tuple[int, dict[TableName, int]]:
    """Return the tables of a skip, and a seqno at which they have these names in the interval that left it out.

    On another server the transaction has another seqno, which is not known. A rename in the interval is before it, or
    after it. Then both names count.
    """
    tables = map(TableName.parse, skip.tables)
    if skip.generation == manifest.generation:
        return skip.seqno, dict.fromkeys(tables, 0)
    return manifest.stop_seqno, possible_names(manifest, tables)
