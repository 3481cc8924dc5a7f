"""Reading the manifests of initial loads, and whether the loads are in the warehouse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.layout import chain_folder, load_folder, loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.store.base import Store


class LoadManifests:
    """Reads the manifests of the initial loads of one source."""

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source

    def largest_seqno(self, generation: str) -> int:
        """Return the largest seqno that an initial load of the generation can have produced; 0 without loads."""
        largest = 0
        for start, key in self._keys(generation):
            manifest = Manifest.find(self._store, key)
            largest = max(largest, start, manifest.exact_at_seqno if manifest else 0)
        return largest

    def has_from(self, generation: str, seqno: int) -> bool:
        """Return whether an initial load of any table was staged that starts at a seqno or later."""
        keys = (key for start, key in self._keys(generation) if start >= seqno)
        return any(Manifest.find(self._store, key) for key in keys)

    def has_begun(self, generation: str, table: TableName, seqno: int) -> bool:
        """Return whether an initial load of a table was begun that starts at a seqno or later."""
        names = self._store.folders(f"{load_folder(self._source, generation, table)}/")
        return any(int(name) >= seqno for name in names)

    def newest(self, generation: str, table: TableName) -> Manifest | None:
        """Return the manifest of the newest initial load of a table, or None."""
        return self._newest_in(f"{load_folder(self._source, generation, table)}/")

    def _newest_in(self, folder: str) -> Manifest | None:
        """Return the manifest of the newest initial load in a table's folder. A running load has none yet."""
        keys = (f"{folder}{start}/manifest.json" for start in reversed(self._store.folders(folder)))
        return next((found for key in keys if (found := Manifest.find(self._store, key))), None)

    def tables_with_load(self, generation: str, known: Collection[TableName]) -> Iterator[TableName]:
        """Yield the tables that have a staged initial load, except known tables."""
        folders = {f"{load_folder(self._source, generation, table)}/" for table in known}
        for folder in self._folders(generation):
            if folder not in folders and (manifest := self._newest_in(folder)):
                yield from (manifest.schema_of(schema_id).name for schema_id in manifest.schemas)

    def has_applied(self, generations: Iterable[str], table: TableName, low: int, below: int, warehouse: str) -> bool:
        """Return whether an initial load of a table, with `low` <= seqno < `below`, is in a warehouse; see Loaded."""
        return any(True for one in generations for _ in self._keys_in_warehouse(one, table, low, below, warehouse))

    def newest_applied(self, generation: str, table: TableName, below: int) -> Manifest | None:
        """Return the manifest of the newest initial load of a table with seqno < `below` that is in the warehouse."""
        key = next(self._keys_in_warehouse(generation, table, 0, below), None)
        return Manifest.find(self._store, key) if key else None

    def _keys_in_warehouse(
        self, generation: str, table: TableName, low: int, below: int, warehouse: str = ""
    ) -> Iterator[str]:
        """Yield the keys of the manifests of initial loads in the warehouse, newest first."""
        folder = load_folder(self._source, generation, table)
        names = [name for name in self._store.folders(folder + "/") if low <= int(name) < below]
        for key in (f"{folder}/{name}/manifest.json" for name in reversed(names)):
            note = Loaded.find(self._store, loaded_key(key))
            if warehouse in ("", note.warehouse) if note else self._is_adopted(key):
                yield key

    def _is_adopted(self, manifest: str) -> bool:
        found = Manifest.find(self._store, manifest)
        return found is not None and found.adopted

    def exact_seqno(self, generation: str, table: TableName) -> int:
        """Return the seqno from which the newest initial load of a table is exact; 0 if the table has no load."""
        found = self.newest(generation, table)
        return found.exact_at_seqno if found else 0

    def _keys(self, generation: str) -> Iterator[tuple[int, str]]:
        """Yield the start seqno of each initial load, and the key of its manifest, which may not exist yet."""
        for folder in self._folders(generation):
            for start in self._store.folders(folder):
                yield int(start), f"{folder}{start}/manifest.json"

    def _folders(self, generation: str) -> Iterator[str]:
        """Yield the folder of each table with an initial load, staged or begun."""
        root = f"{chain_folder(self._source, generation)}/load/"
        for schema in self._store.folders(root):
            yield from (f"{root}{schema}/{table}/" for table in self._store.folders(f"{root}{schema}/"))
