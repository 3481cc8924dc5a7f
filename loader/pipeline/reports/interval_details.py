"""Intervals for people: their states, their details, and the verification of their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import DataError
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest, Plan, StagedFile
from loader.staging.file_verification import find_faults
from loader.staging.inventory import StoredInterval, attempt_name, list_interval, list_intervals
from loader.staging.layout import interval_folder
from loader.staging.published import Published
from loader.store.registry import open_store

State = Literal["planned", "staged", "applied", "superseded"]


class IntervalState(BaseModel):
    """One interval for people.

    Attributes:
        state: `planned`; `staged`: its files exist; `applied`: a published record says that every table has it,
            quarantined tables included; `superseded`: it belongs to an older generation, after the position from which
            the newer generation continues.
        manifest: key of its manifest below the staging root; empty before it is staged.
        purged: its files were removed after it was applied.
        age: seconds since it was planned.
        staged_at: when its files were complete, by the clock of the store; None before.
        published_at: when its published record was written or last completed; None without one. Not every applied
            interval has a record.
        behind: tables with staged records in it or in earlier intervals that no published record contains.
        left_out: incomplete tables, which lack rows of the interval.
    """

    model_config = ConfigDict(frozen=True)

    generation: str
    start: str
    stop: str
    start_seqno: int
    state: State
    manifest: str = ""
    purged: bool = False
    age: int
    staged_at: datetime | None = None
    published_at: datetime | None = None
    rows: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    bytes: int = 0
    tables: int = 0
    behind: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class IntervalDetail(BaseModel):
    """The state of an interval, its plan and, once it is staged, its manifest."""

    model_config = ConfigDict(frozen=True)

    state: IntervalState
    plan: Plan
    manifest: Manifest | None


class FileFault(BaseModel):
    """A file that does not match the manifest. `foreign`: it is in the attempt's folder, but no manifest names it."""

    model_config = ConfigDict(frozen=True)

    file: str
    fault: Literal["lost or changed", "foreign"]
    why: str = ""


def intervals(settings: SourceSettings, limit: int = 0) -> list[IntervalState]:
    """Return the newest intervals of the source in order, of the newest generation and its predecessors.

    Args:
        settings: of the source.
        limit: how many; 0 for all. With a limit, the number of requests depends on it and on the number of intervals
            that are not applied, not on the length of the history.
    """
    return [state for state, _ in states_with_manifests(settings, limit)][-limit:]


def states_with_manifests(settings: SourceSettings, limit: int) -> Iterator[tuple[IntervalState, Manifest | None]]:
    """Yield the state and the manifest of each interval that `intervals` reads, in order.

    They are at least the `limit` newest intervals. Older intervals are read if they are not applied.
    """
    chain = chain_of(settings)
    lineage = chain.lineage(chain.require_generation().name)
    followed = list(zip_longest(lineage, lineage[1:]))
    record = _record(chain, lineage)
    places = _newest(chain, followed, limit, record) if limit else None
    behind = _Behind(record, places[0][1] if places else 0)
    for place, (older, newer) in enumerate(followed):
        starts = [start for at, start in places if at == place] if places is not None else None
        plans = chain.plans(older, starts)
        stored = list_intervals(chain.store, settings.name, older.name) if starts is None else {}
        for plan in plans:
            one = stored.get(plan.start_seqno) or list_interval(
                chain.store, settings.name, older.name, plan.start_seqno
            )
            manifest = _manifest(chain, plan, one)
            yield _state(plan, one, manifest, behind, newer), manifest


def _record(chain: PlanChain, lineage: Sequence[Generation]) -> Published | None:
    records = (chain.newest_published(one.name) for one in reversed(lineage))
    return next((found[1] for found in records if found), None)


def _newest(
    chain: PlanChain, followed: Sequence[tuple[Generation, Generation | None]], limit: int, record: Published | None
) -> list[tuple[int, int]]:
    """Return the newest intervals as (index of the generation, start), in order.

    They are `limit` intervals, or more if older intervals are not applied.
    """
    found: list[tuple[int, int]] = []
    for place in reversed(range(len(followed))):
        head = chain.newest_plan(followed[place][0].name)
        for start in chain.descending_starts(followed[place][0].name, head.stop_seqno) if head else ():
            if len(found) >= limit and record is not None and start < record.stop_seqno:
                return found[::-1]
            found.append((place, start))
    return found[::-1]


def interval(settings: SourceSettings, start_seqno: int) -> IntervalDetail:
    """Return the interval that starts at that seqno.

    Raises:
        DataError: there is no such interval.
    """
    chain = chain_of(settings)
    generation = chain.generation_of_interval(start_seqno)
    lineage = chain.lineage(chain.require_generation().name)
    newer = next((one for one in lineage if one.follows and one.follows.name == generation.name), None)
    plan = chain.require_plan(generation.name, start_seqno)
    record = _record(chain, lineage)
    behind = _Behind(record, start_seqno)
    for manifest in chain.manifests_from(generation.name, record.stop_seqno) if record else ():
        if manifest.start_seqno >= start_seqno:
            break
        behind.after(manifest)
    stored = list_interval(chain.store, settings.name, generation.name, start_seqno)
    found = _manifest(chain, plan, stored)
    return IntervalDetail(state=_state(plan, stored, found, behind, newer), plan=plan, manifest=found)


def staged_files(settings: SourceSettings, start_seqno: int, table: TableName) -> tuple[Manifest, list[StagedFile]]:
    """Return the manifest of an interval and its files of one table, in log order.

    Raises:
        DataError: the interval is not staged, or has no records of the table.
    """
    manifest = interval(settings, start_seqno).manifest
    files = list(manifest.files_of(table)) if manifest else []
    if manifest is None or not files:
        raise DataError(
            "the interval has no records of the table" if manifest else "the interval is not staged yet",
            hint=f"loader intervals {start_seqno}",
            table=table,
            interval=start_seqno,
        )
    return manifest, files


def verify_interval(settings: SourceSettings, start_seqno: int) -> list[FileFault]:
    """Read every file of a staged interval, and return the files that are lost, changed or foreign.

    Raises:
        DataError: the interval is not staged.
    """
    manifest = interval(settings, start_seqno).manifest
    if manifest is None:
        raise DataError("the interval is not staged yet", hint="loader extract", interval=start_seqno)
    store = open_store(settings.staging_root)
    files = chain_of(settings).files(manifest.generation, start_seqno)
    named = {file.key for file in files}
    attempts = {attempt_name(key) for key in named}
    found = [
        FileFault(file=error.where["file"], fault="lost or changed", why=error.why or error.what)
        for error in find_faults(store, files)
    ]
    stored = list_interval(store, settings.name, manifest.generation, start_seqno)
    in_folders = (info.key for attempt in sorted(attempts) for info in stored.attempts.get(attempt, []))
    return found + [FileFault(file=key, fault="foreign") for key in in_folders if key not in named]


class _Behind:
    """Computes which tables lack staged records, interval after interval, from the newest published record.

    A table that stopped before the first interval always counts as behind.
    """

    def __init__(self, record: Published | None, first: int) -> None:
        self._record = record
        self._tables = {name for name, seqno in record.behind.items() if seqno < first} if record else set()

    def after(self, manifest: Manifest) -> tuple[str, ...]:
        """Return the tables that are behind up to an interval. Call it for consecutive intervals."""
        if self._record is None or manifest.stop_seqno > self._record.stop_seqno:
            self._tables |= {str(file.name) for file in manifest.files if file.rows}
            self._tables |= {one.table for one in manifest.left_out}
        else:
            self._tables |= self._record.tables_lacking(manifest)
        return tuple(sorted(self._tables))

    def done(self, manifest: Manifest) -> bool:
        """Return whether every table has an interval."""
        record = self._record
        return record is not None and manifest.stop_seqno <= record.stop_seqno and not record.tables_lacking(manifest)


def _manifest(chain: PlanChain, plan: Plan, found: StoredInterval) -> Manifest | None:
    return chain.manifest(plan.generation, plan.start_seqno) if "manifest.json" in found.documents else None


def _manifest_key(manifest: Manifest) -> str:
    return f"{interval_folder(manifest.source, manifest.generation, manifest.start_seqno)}/manifest.json"


def _state(
    plan: Plan, found: StoredInterval, manifest: Manifest | None, behind: _Behind, newer: Generation | None
) -> IntervalState:
    """Return the state of an interval; `newer` is the generation that continues its generation."""
    files = manifest.files if manifest else ()
    state: State = "staged" if manifest else "planned"
    if newer and newer.follows and plan.start_seqno >= newer.follows.stop_seqno:
        state = "superseded"
    elif manifest and behind.done(manifest):
        state = "applied"
    planned = found.documents["plan.json"].modified if "plan.json" in found.documents else datetime.now(UTC)
    return IntervalState(
        generation=plan.generation,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        state=state,
        manifest=_manifest_key(manifest) if manifest else "",
        purged="purged.json" in found.documents,
        age=max(0, int((datetime.now(UTC) - planned).total_seconds())),
        staged_at=_modified(found, "manifest.json"),
        published_at=_modified(found, "published.json"),
        rows=sum(file.rows for file in files),
        inserts=sum(file.inserts for file in files),
        updates=sum(file.updates for file in files),
        deletes=sum(file.deletes for file in files),
        bytes=sum(file.bytes for file in files),
        tables=len({file.name for file in files}),
        behind=behind.after(manifest) if manifest and state != "superseded" else (),
        left_out=tuple(one.table for one in manifest.left_out) if manifest else (),
    )


def _modified(found: StoredInterval, document: str) -> datetime | None:
    return found.documents[document].modified if document in found.documents else None
