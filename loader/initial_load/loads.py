"""The durable state of initial loads in a store. Every object is created only if absent."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TypeVar

from loader.errors import RetryableError
from loader.failpoints import failpoint
from loader.initial_load.documents import LoadedChunk, LoadPlan
from loader.model.table import TableName
from loader.staging.chain import PlanChain
from loader.staging.document import Document
from loader.staging.documents import Manifest
from loader.staging.layout import load_folder, loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.store.base import Store

NEEDS_NEW_POSITION = "FLUSH BINARY LOGS on the source, so that its log position changes; then run again"
"""What to do if a load needs a position of its own: there is one load of a table per position of the log."""

_Document = TypeVar("_Document", bound=Document)


def plan_key(plan: LoadPlan) -> str:
    """Return the key of the plan."""
    return f"{plan.folder}/plan.json"


def manifest_key(plan: LoadPlan) -> str:
    """Return the key of the manifest that completes the load."""
    return f"{plan.folder}/manifest.json"


class Loads:
    """The initial loads of one generation of a source."""

    def __init__(self, store: Store, source: str, generation: str) -> None:
        self._store = store
        self._place = (source, generation)

    def plan(self, key: str) -> LoadPlan:
        """Return the plan with this key, which must exist."""
        return LoadPlan.read(self._store.get(key), key)

    def newest(self, table: TableName, not_before: int) -> LoadPlan | None:
        """Return the table's last load with a seqno of at least `not_before`, finished or not; None without one."""
        folder = load_folder(*self._place, table)
        for name in reversed(self._store.folders(f"{folder}/")):
            plan = LoadPlan.find(self._store, f"{folder}/{name}/plan.json") if int(name) >= not_before else None
            if plan:
                return plan
        return None

    def newest_followed(self, table: TableName) -> LoadPlan | None:
        """Return the table's last load of an older generation, or None.

        The load must be finished, and this generation must continue after everything that it read.
        """
        source, generation = self._place
        lineage = PlanChain(self._store, source).lineage(generation)
        for older, newer in reversed(list(pairwise(lineage))):
            plan = Loads(self._store, source, older.name).newest(table, 0)
            if plan and newer.follows:
                manifest = self.manifest(plan)
                return plan if manifest and manifest.exact_at_seqno <= newer.follows.stop_seqno else None
        return None

    def begin(self, plan: LoadPlan) -> LoadPlan:
        """Create the plan if it is absent, and return the stored plan: another process may have created it.

        Raises:
            RetryableError: the stored plan is for another definition of the table, or another `undecodable`.
        """
        failpoint("plan.before")
        self._store.create(plan_key(plan), plan.canonical())
        failpoint("plan.after")
        found = self.plan(plan_key(plan))
        if (found.digest, found.undecodable) != (plan.digest, plan.undecodable):
            raise RetryableError(
                "an unfinished load at this position was planned for another definition of the table",
                why="an older version of the loader planned it, the table was altered with sql_log_bin=0, or the"
                " configuration had another undecodable",
                hint=NEEDS_NEW_POSITION,
                table=plan.name,
                position=plan.position,
            )
        return found

    def chunks(self, plan: LoadPlan) -> dict[int, LoadedChunk]:
        """Return the finished chunks by number."""
        found = {}
        for info in self._store.list(f"{plan.folder}/chunks/"):
            chunk = LoadedChunk.read(self._store.get(info.key), info.key)
            found[chunk.number] = chunk
        return found

    def chunk_times(self, plan: LoadPlan) -> list[datetime]:
        """Return when the finished chunks were stored, by the clock of the store."""
        return [info.modified for info in self._store.list(f"{plan.folder}/chunks/")]

    def finish(self, plan: LoadPlan, chunk: LoadedChunk) -> LoadedChunk:
        """Store a chunk, or return the chunk that another attempt finished first."""
        key = f"{plan.folder}/chunks/{chunk.number:06d}.json"
        failpoint("chunk.before")
        self._store.create(key, chunk.canonical())
        failpoint("chunk.after")
        return LoadedChunk.read(self._store.get(key), key)

    def manifest(self, plan: LoadPlan) -> Manifest | None:
        """Return the manifest, or None while the load is unfinished."""
        return Manifest.find(self._store, manifest_key(plan))

    def is_in_warehouse(self, plan: LoadPlan) -> bool:
        """Return whether the load is noted to be in a warehouse."""
        return Loaded.find(self._store, loaded_key(manifest_key(plan))) is not None

    def publish(self, plan: LoadPlan, manifest: Manifest) -> Manifest:
        """Publish the manifest of the load, or return the manifest that another attempt published first."""
        failpoint("manifest.before")
        self._store.create(manifest_key(plan), manifest.canonical())
        failpoint("manifest.after")
        return Manifest.read(self._store.get(manifest_key(plan)), manifest_key(plan))
