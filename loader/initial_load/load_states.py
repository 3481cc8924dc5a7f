"""Initial loads that are not in the warehouse yet, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from loader.initial_load.documents import LoadPlan
from loader.staging.documents import Loaded, Manifest
from loader.staging.layout import chain_folder, loaded_key
from loader.store.base import Store


class LoadState(BaseModel):
    """An initial load that is not in the warehouse yet.

    Attributes:
        table: as `schema.table`.
        chunks: chunks of the load.
        staged: chunks that are staged.
        finished: whether the load is published, so that only the warehouse table is missing.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    chunks: int
    staged: int
    finished: bool


def unfinished_loads(store: Store, source: str, generation: str) -> Iterator[LoadState]:
    """Yield the newest load of each table, unless it is in the warehouse.

    A table without a key is read in one piece, and has no plan until it is read.

    Args:
        store: of the staged files.
        source: its name.
        generation: of the log.
    """
    root = f"{chain_folder(source, generation)}/load/"
    for schema in store.folders(root):
        for table in store.folders(f"{root}{schema}/"):
            folder = f"{root}{schema}/{table}"
            starts = store.folders(f"{folder}/")
            if starts and (state := _state(store, f"{folder}/{starts[-1]}")):
                yield state


def _state(store: Store, folder: str) -> LoadState | None:
    manifest = f"{folder}/manifest.json"
    if Loaded.find(store, loaded_key(manifest)):
        return None
    plan = LoadPlan.find(store, f"{folder}/plan.json")
    if plan is None:
        return None
    finished = Manifest.find(store, manifest) is not None
    staged = plan.chunks if finished else sum(1 for _ in store.list(f"{folder}/chunks/"))
    return LoadState(table=str(plan.name), chunks=plan.chunks, staged=staged, finished=finished)
