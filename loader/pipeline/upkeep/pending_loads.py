"""Initial loads over which the log is still to be merged. A purge keeps the staged rows that they need.

A published record does not know of a load: it lists a new table only after a delta, and a table that is loaded again is
in it with its older rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from loader.model.table import TableName
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest
from loader.staging.inventory import list_interval
from loader.staging.layout import chain_folder, encode, loaded_key
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.published import Published
from loader.store.base import Store

_AT_ONCE = 8  # requests to the store


@dataclass(frozen=True)
class PendingLoads:
    """The positions of the newest loads of tables, unless a published record followed the load, and of overtaken loads.

    Attributes:
        positions: the smallest seqno of the loads of each table, by the path of its table in the folder of loads.
    """

    positions: Mapping[str, int]

    def need(self, manifest: Manifest) -> bool:
        """Return whether a load needs rows of an interval: it does not contain what the log has after its position."""
        rows = [(file.name, file.max_seqno) for file in manifest.files if file.rows]
        rows += [(one.name, one.seqno) for one in manifest.left_out]
        return any(seqno > self.positions.get(_path(table), seqno) for table, seqno in rows)


def pending_loads(chain: PlanChain, lineage: Sequence[Generation], record: Published) -> PendingLoads:
    """Return the loads of these generations that are not finished, or came into the warehouse after the newest record.

    A load that has files but no plan counts too, because a table without a key has no plan until it is read. An
    overtaken load counts until the log is merged over it, because the newest record may be of an earlier run.
    """
    overtaken = {_path(load.name): load.seqno for load in reversed(OvertakenLoads(chain.store, chain.source).all())}
    newest: dict[str, str] = {}
    for one in lineage:
        newest |= _newest_folders(chain.store, f"{chain_folder(chain.source, one.name)}/load/")
    if not newest:
        return PendingLoads({})
    recorded = _recorded_at(chain, record)

    def is_pending(folder: str) -> bool:
        moment = _loaded_at(chain.store, folder)
        return moment is None or recorded is None or moment >= recorded

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        pending = dict(zip(newest, pool.map(is_pending, newest.values()), strict=True))
    positions = {path: int(folder.rpartition("/")[2]) for path, folder in newest.items() if pending[path]}
    return PendingLoads(positions | {path: min(seqno, positions.get(path, seqno)) for path, seqno in overtaken.items()})


def _path(table: TableName) -> str:
    return f"{encode(table.schema)}/{encode(table.table)}"


def _newest_folders(store: Store, root: str) -> dict[str, str]:
    """Return the folder of the newest load of each table, by the table's path."""
    paths = [f"{schema}/{table}" for schema in store.folders(root) for table in store.folders(f"{root}{schema}/")]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        starts = pool.map(lambda path: store.folders(f"{root}{path}/"), paths)
        return {path: f"{root}{path}/{found[-1]}" for path, found in zip(paths, starts, strict=True) if found}


def _loaded_at(store: Store, folder: str) -> datetime | None:
    """Return when a load was noted to be in the warehouse; None if it was not."""
    key = loaded_key(f"{folder}/manifest.json")
    return next((info.modified for info in store.list(f"{folder}/") if info.key == key), None)


def _recorded_at(chain: PlanChain, record: Published) -> datetime | None:
    """Return when the newest published record was stored."""
    found = chain.newest_published(record.generation)
    stored = list_interval(chain.store, chain.source, record.generation, found[0]) if found else None
    return stored.documents["published.json"].modified if stored else None
