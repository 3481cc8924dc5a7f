"""The names of tables that lack rows which operators skipped, after later renames. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import read_barrier
from loader.model.table import TableName
from loader.schema.changes import Renamed
from loader.staging.documents import Manifest
from loader.staging.notes.skips import SkipRecord

IsLoaded = Callable[[TableName, int, int], bool]
"""Returns whether a table was loaded after the transaction with a seqno, and before the one with another."""


def follow_names(
    known: Mapping[str, Iterable[str]],
    reached: int,
    manifests: Iterable[Manifest],
    skip_of: Callable[[str], SkipRecord],
    is_loaded: IsLoaded,
) -> dict[str, tuple[str, ...]]:
    """Return the names of the tables that lack rows, by key of the skip, at the stop of the last interval.

    A table that was loaded again before it was renamed lacks no rows under its new name.

    Args:
        known: the same at the seqno `reached`.
        reached: a seqno.
        manifests: intervals in order. They may begin before `reached`.
        skip_of: returns a record by its key.
        is_loaded: see IsLoaded.
    """
    found = {key: (reached, set(map(TableName.parse, names))) for key, names in known.items()}
    for manifest in manifests:
        for key in manifest.skips:
            found.setdefault(key, _names_in(manifest, skip_of(key)))
        for seqno, renamed in iter_renames(manifest):
            for key, (since, names) in found.items():
                if seqno > since and renamed.old in names:
                    names.remove(renamed.old)
                    if not is_loaded(renamed.old, skip_of(key).seqno, seqno):
                        names.add(renamed.new)
    return {key: tuple(sorted(map(str, names))) for key, (_, names) in sorted(found.items())}


def iter_renames(manifest: Manifest) -> Iterator[tuple[int, Renamed]]:
    """Yield the renames in an interval with their seqnos, in log order. An unreadable statement stops its tables."""
    for barrier in sorted(manifest.barriers, key=lambda one: one.seqno):
        with suppress(UnsupportedError):
            yield from ((barrier.seqno, one) for one in read_barrier(barrier) if isinstance(one, Renamed))


def _names_in(manifest: Manifest, skip: SkipRecord) -> tuple[int, set[TableName]]:
    """Return the tables of a skip, and the seqno of the transaction in the interval that left it out.

    On another server the transaction has another seqno, which is not known. Then the stop of the interval counts.
    """
    since = skip.seqno if skip.generation == manifest.generation else manifest.stop_seqno
    return since, set(map(TableName.parse, skip.tables))
