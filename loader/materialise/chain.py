"""The extracted intervals, initial loads and published records of a source's log, as one run sees them.

The log is that of a generation, behind as much as counts of those that it follows on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from threading import Lock
from typing import NamedTuple

from loader.errors import GapError, StagedDataError
from loader.failpoints import failpoint
from loader.materialise.events import Came, Left, Made, events_of, read_barrier, writes_rows
from loader.materialise.plan import covering
from loader.model.table import TableName
from loader.schema.changes import Renamed
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest, Published
from loader.staging.filters import Captured
from loader.staging.layout import chain_folder, interval_folder, load_folder, published_key
from loader.store.base import ObjectNotFound, Store


class Join(NamedTuple):
    """Where one generation goes on from another: the older one, up to which seqno it counts, where the newer begins."""

    older: str
    stop: int
    start: int


class Chain:
    """The intervals that were there when it was made, and what has been read of them so far. Safe for threads."""

    def __init__(self, store: Store, source: str, generation: str) -> None:
        self.store = store
        self.source = source
        self.generation = generation
        self._plans = PlanChain(store, source)
        lineage = self._plans.lineage(generation)
        self.identity = lineage[-1].identity
        self.generations = tuple(one.name for one in lineage)
        self.joins = tuple(
            Join(new.follows.name, new.follows.stop_seqno, new.start_position.seqno(new.shift))
            for new in lineage
            if new.follows
        )
        self._of: dict[int, str] = {}
        for one, following in zip_longest(self.generations, self.joins):
            self._of |= {start: one for start in self._plans.starts(one) if not following or start < following.stop}
        self.starts = sorted(self._of)
        self._manifests: dict[int, Manifest | None] = {}
        self._captured: dict[int, Captured] = {}
        self._lock = Lock()

    def manifest(self, start: int) -> Manifest | None:
        """The manifest of the interval with that start seqno; None while it is not extracted.

        Raises:
            StagedDataError: it is of another interval or source than its place says.
        """
        with self._lock:
            if start not in self._manifests:
                generation = self._of[start]
                manifest = self._plans.manifest(generation, start)
                if manifest is not None:
                    key = f"{interval_folder(self.source, generation, start)}/manifest.json"
                    _check_place(manifest, key, self.source, generation, start)
                self._manifests[start] = manifest
            return self._manifests[start]

    def target(self, through: int | None) -> Manifest | None:
        """The interval that stops at `through`, or the last one; None when nothing was extracted yet.

        Raises:
            GapError: no extracted interval stops there.
        """
        if through is None:
            return next((found for start in reversed(self.starts) if (found := self.manifest(start))), None)
        place = bisect_right(self.starts, through - 1) - 1
        found = self.manifest(self.starts[place]) if place >= 0 else None
        if found is not None and found.stop_seqno == through:
            return found
        raise GapError(
            "no extracted interval stops where the tables are to be brought",
            hint="extract that interval first",
            source=self.source,
            seqno=through,
        )

    def covering(self, applied: int, target: int) -> tuple[Manifest, ...]:
        """See `loader.materialise.plan.covering`."""
        return covering(self.manifest, self.starts, applied, target, {join.start: join.stop for join in self.joins})

    def check_joined(self, table: TableName, applied: int) -> None:
        """Raise GapError when a table's initial load read more of an older generation than the newer one goes on from.

        What it read then may never have reached the server that is followed now.
        """
        for join in self.joins:
            if applied < join.start and max(applied, self._plans.exact_at(join.older, table)) > join.stop:
                raise GapError(
                    "the table was loaded from another server, at a position that this one does not go on from",
                    why="transactions that were seen then may be missing here",
                    hint=f"loader initial-load --table {table}",
                    table=table,
                )

    def between(self, low: int, target: int) -> Iterator[Manifest]:
        """Manifests of all extracted intervals with a part in (low, target], whether or not they join up."""
        first = max(0, bisect_right(self.starts, low) - 1)
        for start in self.starts[first:]:
            manifest = self.manifest(start) if start < target else None
            if manifest is not None and manifest.stop_seqno > low:
                yield manifest

    def captures(self, start: int, table: TableName) -> bool:
        """Whether the interval with that start seqno was extracted with the table.

        Raises:
            DataError: the interval has no plan.
        """
        with self._lock:
            if start not in self._captured:
                plan = self._plans.require_plan(self._of[start], start)
                self._captured[start] = Captured(plan.tables)
            return self._captured[start](table)

    def born(self, table: TableName, target: int) -> int | None:
        """The seqno right before the statement that made the table as it is at `target`; None if it may be older.

        A statement that makes it unless it is there tells nothing, but for one that took it away before.
        """
        made: int | None = None
        for start in reversed(self.starts):
            manifest = self.manifest(start) if start < target else None
            for event in reversed(events_of(table, [manifest], 0, target) if manifest else []):
                if isinstance(event, Left):
                    return made
                if isinstance(event, Came) or (isinstance(event, Made) and event.surely):
                    return event.seqno - 1
                if isinstance(event, Made):
                    made = event.seqno - 1
        return None

    def renames(self, low: int, target: int) -> Iterator[tuple[int, tuple[TableName, ...]]]:
        """Seqno and captured tables of each statement in (low, target] that gives a table another's name, in order."""
        for manifest in self.between(low, target):
            for barrier in manifest.barriers:
                changes = read_barrier(barrier) if low < barrier.seqno <= target else ()
                if any(isinstance(change, Renamed) for change in changes):
                    yield barrier.seqno, tuple(map(TableName.parse, barrier.tables))

    def unlogged(self, low: int, target: int) -> Iterator[tuple[int, tuple[TableName, ...]]]:
        """Seqno and tables of each statement in (low, target] that changed rows which the log does not have, in order.

        A statement that may have changed any table names none.
        """
        for manifest in self.between(low, target):
            for barrier in manifest.barriers:
                if low < barrier.seqno <= target and writes_rows(barrier):
                    yield barrier.seqno, tuple(map(TableName.parse, barrier.tables))

    def left_out(self, low: int, target: int) -> Iterator[tuple[int, TableName]]:
        """Seqno and table of each first row in (low, target] that an interval left out, in their order."""
        found = {(one.seqno, one.name) for manifest in self.between(low, target) for one in manifest.left_out}
        yield from sorted(one for one in found if low < one[0] <= target)

    def newest_published(self) -> Published | None:
        """The published record of the latest interval that has one."""
        records = (self._plans.published(self._of[start], start) for start in reversed(self.starts))
        return next((record for record in records if record), None)

    def loaded(self, known: set[TableName]) -> Iterator[TableName]:
        """Tables other than the known ones that have a staged initial load."""
        for generation in reversed(self.generations):
            yield from self._loaded(generation, known)

    def publish(self, last: Manifest, record: Published) -> str:
        """Write the published record of an interval, or complete the one that is there; its key.

        A record that a quarantined table is missing from gets it once the table has the interval. Nothing else of a
        record changes, and of two that complete one at once either may win: what it lacks then is found again.
        """
        key = published_key(self.source, last.generation, last.start_seqno)
        failpoint("published.before")
        if not self.store.create(key, record.canonical()):
            known = Published.read(self.store.get(key), key)
            completed = known.completed(record)
            if completed != known:
                with self.store.writing(key) as sink:
                    sink.write(completed.canonical())
        failpoint("published.after")
        return key

    def _loaded(self, generation: str, known: set[TableName]) -> Iterator[TableName]:
        folders = {f"{load_folder(self.source, generation, table)}/" for table in known}
        root = f"{chain_folder(self.source, generation)}/load/"
        for schema in self.store.folders(root):
            for table in self.store.folders(f"{root}{schema}/"):
                folder = f"{root}{schema}/{table}/"
                if folder not in folders:
                    yield from self._tables_of_loads(folder)

    def _tables_of_loads(self, folder: str) -> Iterator[TableName]:
        for start in reversed(self.store.folders(folder)):
            try:
                data = self.store.get(f"{folder}{start}/manifest.json")
            except ObjectNotFound:
                continue  # being read from the server at the moment, or given up
            manifest = Manifest.read(data, f"{folder}{start}/manifest.json")
            yield from (manifest.schema_of(schema_id).name for schema_id in manifest.schemas)
            return


def read_load(store: Store, key: str, source: str, generations: Sequence[str]) -> Manifest:
    """The manifest of an initial load of this source and one of these generations.

    Raises:
        StagedDataError: missing, unreadable, or of another source or generation.
    """
    try:
        manifest = Manifest.read(store.get(key), key)
    except ObjectNotFound as error:
        raise StagedDataError(
            "the manifest of an initial load is missing", hint="load the table again", key=key
        ) from error
    generation = manifest.generation if manifest.generation in generations else generations[-1]
    _check_place(manifest, key, source, generation, manifest.start_seqno)
    return manifest


def _check_place(manifest: Manifest, key: str, source: str, generation: str, start: int) -> None:
    found = (manifest.source, manifest.generation, manifest.start_seqno)
    if found != (source, generation, start):
        raise StagedDataError(
            "a manifest is not that of its folder",
            why=f"it is of source {found[0]}, generation {found[1]}, starting at {found[2]}",
            hint="restore the object that was there",
            key=key,
        )
