"""The extracted intervals, initial loads and published records of a generation, as one run sees them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from threading import Lock

from loader.errors import GapError, StagedDataError
from loader.materialise.plan import covering
from loader.model.table import TableName
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest, Published
from loader.staging.filters import Captured
from loader.staging.layout import chain_folder, interval_folder, load_folder
from loader.store.base import ObjectNotFound, Store


class Chain:
    """The intervals that were there when it was made, and what has been read of them so far. Safe for threads."""

    def __init__(self, store: Store, source: str, generation: str) -> None:
        self.store = store
        self.source = source
        self.generation = generation
        self._plans = PlanChain(store, source)
        self.starts = self._plans.starts(generation)
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
                manifest = self._plans.manifest(self.generation, start)
                if manifest is not None:
                    key = f"{interval_folder(self.source, self.generation, start)}/manifest.json"
                    _check_place(manifest, key, self.source, self.generation, start)
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
        return covering(self.manifest, self.starts, applied, target)

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
                plan = self._plans.require_plan(self.generation, start)
                self._captured[start] = Captured(plan.tables)
            return self._captured[start](table)

    def newest_published(self) -> Published | None:
        """The published record of the latest interval that has one."""
        records = (self._plans.published(self.generation, start) for start in reversed(self.starts))
        return next((record for record in records if record), None)

    def loaded(self, known: set[TableName]) -> Iterator[TableName]:
        """Tables other than the known ones that have a staged initial load."""
        folders = {f"{load_folder(self.source, self.generation, table)}/" for table in known}
        root = f"{chain_folder(self.source, self.generation)}/load/"
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


def published_key(source: str, generation: str, start: int) -> str:
    """Key of the published record of the interval with that start."""
    return f"{interval_folder(source, generation, start)}/published.json"


def read_load(store: Store, key: str, source: str, generation: str) -> Manifest:
    """The manifest of an initial load of this source and generation.

    Raises:
        StagedDataError: missing, unreadable, or of another source or generation.
    """
    try:
        manifest = Manifest.read(store.get(key), key)
    except ObjectNotFound as error:
        raise StagedDataError(
            "the manifest of an initial load is missing", hint="load the table again", key=key
        ) from error
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
