"""Notes on initial loads that are in the warehouse. A repeated load then does not start Spark."""

from __future__ import annotations

from loader.materialise.spec import CatalogSettings, LoadSpec, MaterialiseResult, TableResult
from loader.model.table import TableName
from loader.staging.layout import loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.staging.notes.quarantine import Quarantines
from loader.store.base import Store
from loader.store.registry import open_store


def note_loaded(store: Store, source: str, catalog: CatalogSettings, table: str, position: str, manifest: str) -> None:
    """Note that the load of a table with this manifest key is in the warehouse, at this position."""
    note = Loaded(source=source, table=table, position=position, warehouse=catalog.place)
    store.create(loaded_key(manifest), note.canonical())


def is_noted(store: Store, manifest: str, catalog: CatalogSettings) -> bool:
    """Return whether the load with this manifest key is noted for this warehouse."""
    note = Loaded.find(store, loaded_key(manifest))
    return note is not None and note.warehouse == catalog.place


def find_noted_loads(spec: LoadSpec) -> MaterialiseResult | None:
    """Return the result of loads that are all noted for this warehouse; None if a note is missing.

    The warehouse itself is not read. If a person dropped a table there, its next merge fails and quarantines it. A
    quarantined table is always loaded.
    """
    store = open_store(spec.staging_root)
    stopped = Quarantines(store, spec.source).all()
    results = []
    for manifest in spec.manifests:
        note = Loaded.find(store, loaded_key(manifest))
        if note is None or note.warehouse != spec.catalog.place or TableName.parse(note.table) in stopped:
            return None
        results.append(TableResult(table=note.table, status="already", position=note.position))
    return MaterialiseResult(tables=tuple(sorted(results, key=lambda result: result.table)))
