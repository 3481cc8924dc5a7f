"""Initial loads that are not in the warehouse yet, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from loader.initial_load.documents import LoadedChunk, LoadPlan
from loader.staging.documents import Manifest
from loader.staging.layout import chain_folder, loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.store.base import Store

_PACE_CHUNKS = 20
"""Pace and chunk size of a load are computed from this number of its newest chunks.

Older chunks may have been read long ago. The documents of all chunks of a large table would take minutes to read.
"""


class LoadState(BaseModel):
    """An initial load that is not in the warehouse yet.

    Attributes:
        table: as `schema.table`.
        chunks: chunks of the load.
        staged: chunks that are staged.
        finished: whether the load is published, so that only the warehouse table is missing.
        newest_chunk: when the newest chunk was staged, by the clock of the store; None if the load is finished or has
            no chunk.
        rows, bytes: of the staged chunks.
        estimated: rows and bytes are computed from those of the newest chunks.
        rows_per_second: of the newest chunks; None if it is unknown or the load is finished.
        seconds_left: until all chunks are staged, at the pace of the newest chunks; None if it is unknown.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    chunks: int
    staged: int
    finished: bool
    rows: int = 0
    bytes: int = 0
    estimated: bool = False
    newest_chunk: datetime | None = None
    rows_per_second: float | None = None
    seconds_left: float | None = None


def unfinished_loads(store: Store, source: str, generation: str, pool: Executor) -> Iterator[LoadState]:
    """Yield the newest load of each table, unless it is in the warehouse.

    A table without a key is read in one piece, and has no plan until it is read.

    Args:
        store: of the staged files.
        source: its name.
        generation: of the log.
        pool: for the requests of several tables at once.
    """
    root = f"{chain_folder(source, generation)}/load/"
    folders = [
        f"{root}{schema}/{table}" for schema in store.folders(root) for table in store.folders(f"{root}{schema}/")
    ]
    yield from filter(None, pool.map(lambda folder: _newest_state(store, folder), folders))


def _newest_state(store: Store, folder: str) -> LoadState | None:
    starts = store.folders(f"{folder}/")
    return _state(store, f"{folder}/{starts[-1]}") if starts else None


def _state(store: Store, folder: str) -> LoadState | None:
    manifest = f"{folder}/manifest.json"
    if Loaded.find(store, loaded_key(manifest)):
        return None
    plan = LoadPlan.find(store, f"{folder}/plan.json")
    if plan is None:
        return None
    if published := Manifest.find(store, manifest):
        return LoadState(
            table=str(plan.name),
            chunks=plan.chunks,
            staged=plan.chunks,
            finished=True,
            rows=sum(file.rows for file in published.files),
            bytes=sum(file.bytes for file in published.files),
        )
    infos = sorted(store.list(f"{folder}/chunks/"), key=lambda info: info.modified)
    times, now = [info.modified for info in infos], datetime.now(UTC)
    newest = [LoadedChunk.read(store.get(info.key), info.key).file for info in infos[-_PACE_CHUNKS:]]
    rows = [file.rows if file else 0 for file in newest]
    per_chunk = len(infos) / len(newest) if newest else 0
    return LoadState(
        table=str(plan.name),
        chunks=plan.chunks,
        staged=len(infos),
        finished=False,
        rows=round(sum(rows) * per_chunk),
        bytes=round(sum(file.bytes for file in newest if file) * per_chunk),
        estimated=len(infos) > len(newest),
        newest_chunk=times[-1] if times else None,
        rows_per_second=rows_per_second(times, rows, now),
        seconds_left=seconds_left(times, plan.chunks, now),
    )


def seconds_left(times: Sequence[datetime], chunks: int, now: datetime) -> float | None:
    """Return the seconds until all chunks are staged; None if fewer than two are staged.

    Args:
        times: when chunks were staged, ascending.
        chunks: of the load.
        now: the current time. If no further chunk is staged, the result grows with it.
    """
    newest = times[-_PACE_CHUNKS:]
    if len(newest) < 2:
        return None
    pace = _seconds(newest, now) / (len(newest) - 1)
    return round((chunks - len(times)) * pace, 1)


def rows_per_second(times: Sequence[datetime], rows: Sequence[int], now: datetime) -> float | None:
    """Return the rows that are staged in a second; None if fewer than two chunks are staged.

    Args:
        times: when chunks were staged, ascending.
        rows: of the newest of these chunks.
        now: the current time. If no further chunk is staged, the result falls.
    """
    newest = times[-len(rows) :]
    seconds = _seconds(newest, now) if len(newest) > 1 else 0
    return round(sum(rows[1:]) / seconds, 1) if seconds else None


def _seconds(newest: Sequence[datetime], now: datetime) -> float:
    """Return the seconds since the first of the newest chunks was staged."""
    return (max(now, newest[-1]) - newest[0]).total_seconds()
