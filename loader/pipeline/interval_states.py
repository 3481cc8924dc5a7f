"""Intervals for people: how each stands, all that is known of one, whether its files are what they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import DataError
from loader.model.table import TableName
from loader.pipeline.planning import chain_of
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain, no_interval
from loader.staging.documents import Generation, Manifest, Plan, Published, StagedFile
from loader.staging.inventory import Stored, attempt_of, inventory
from loader.staging.verifying import faults
from loader.store.opening import open_store

State = Literal["planned", "staged", "applied", "superseded"]


class IntervalState(BaseModel):
    """One interval for people.

    Attributes:
        state: `planned`; `staged`, its files are there; `applied`, a published record says that every table has it;
            `superseded`, a newer generation of the log went on from where it starts, and it does not count.
        purged: its files were removed once it was applied.
        age: seconds since it was planned.
        behind: tables with records in it, or in staged ones before, that no published record says they have.
    """

    model_config = ConfigDict(frozen=True)

    generation: str
    start: str
    stop: str
    start_seqno: int
    state: State
    purged: bool = False
    age: int
    rows: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    bytes: int = 0
    tables: int = 0
    behind: tuple[str, ...] = ()


class IntervalDetail(BaseModel):
    """All that is known of one interval: its state, its plan and, once it is staged, its manifest."""

    model_config = ConfigDict(frozen=True)

    state: IntervalState
    plan: Plan
    manifest: Manifest | None


class FileFault(BaseModel):
    """A file that is not as the manifest says; `foreign`: it is in the attempt's folder, and no manifest names it."""

    model_config = ConfigDict(frozen=True)

    file: str
    fault: Literal["lost or changed", "foreign"]
    why: str = ""


def intervals(settings: SourceSettings) -> list[IntervalState]:
    """Every interval of the source, of all its generations, in order."""
    chain = chain_of(settings)
    chain.require_generation()
    record = newest_record(chain)
    applied = record.stop_seqno if record else 0
    return [state for generation in chain.generations() for state in _states(settings, chain, generation, applied)]


def interval(settings: SourceSettings, start_seqno: int) -> IntervalDetail:
    """The interval that starts there.

    Raises:
        DataError: none does.
    """
    chain = chain_of(settings)
    for state in intervals(settings):
        if state.start_seqno == start_seqno:
            plan = chain.require_plan(state.generation, start_seqno)
            return IntervalDetail(state=state, plan=plan, manifest=chain.manifest(state.generation, start_seqno))
    raise no_interval(settings.name, start_seqno)


def staged_files(settings: SourceSettings, start_seqno: int, table: TableName) -> tuple[Manifest, list[StagedFile]]:
    """The manifest of an interval and the files of one table in it, in the order of the log.

    Raises:
        DataError: the interval is not staged, or has no records of the table.
    """
    manifest = interval(settings, start_seqno).manifest
    files = list(manifest.of_table(table)) if manifest else []
    if manifest is None or not files:
        raise DataError(
            "the interval has no records of the table" if manifest else "the interval is not staged yet",
            hint=f"see what it has: loader intervals {start_seqno}",
            table=table,
            interval=start_seqno,
        )
    return manifest, files


def verify_interval(settings: SourceSettings, start_seqno: int) -> list[FileFault]:
    """Read every file of a staged interval; those that are lost, changed or foreign.

    Raises:
        DataError: the interval is not staged.
    """
    manifest = interval(settings, start_seqno).manifest
    if manifest is None:
        raise DataError("the interval is not staged yet", hint="loader extract", interval=start_seqno)
    store = open_store(settings.staging_root)
    named = {file.key for file in manifest.files}
    attempts = {attempt_of(key) for key in named}
    found = [
        FileFault(file=error.where["file"], fault="lost or changed", why=error.why or error.what)
        for error in faults(store, manifest.files)
    ]
    stored = inventory(store, settings.name, manifest.generation).get(start_seqno, Stored())
    in_folders = (info.key for attempt in sorted(attempts) for info in stored.attempts.get(attempt, []))
    return found + [FileFault(file=key, fault="foreign") for key in in_folders if key not in named]


def newest_record(chain: PlanChain) -> Published | None:
    """The published record of the latest interval that has one, whatever generation it is of."""
    for generation in reversed(chain.generations()):
        for start in reversed(chain.starts(generation.name)):
            if record := chain.published(generation.name, start):
                return record
    return None


def _states(
    settings: SourceSettings, chain: PlanChain, generation: Generation, applied: int
) -> Iterator[IntervalState]:
    stored = inventory(open_store(settings.staging_root), settings.name, generation.name)
    counting = chain.counting(generation)
    behind: set[str] = set()
    for plan in chain.plans(generation):
        found = stored.get(plan.start_seqno, Stored())
        manifest = chain.manifest(generation.name, plan.start_seqno) if "manifest.json" in found.documents else None
        if manifest and plan.stop_seqno > applied:
            behind |= {str(file.name) for file in manifest.files if file.rows}
        superseded = plan.start_seqno >= counting
        yield _state(plan, manifest, found, applied, superseded=superseded).model_copy(
            update={"behind": tuple(sorted(behind)) if manifest else ()}
        )


def _state(plan: Plan, manifest: Manifest | None, found: Stored, applied: int, *, superseded: bool) -> IntervalState:
    files = manifest.files if manifest else ()
    state: State = "staged" if manifest else "planned"
    if superseded:
        state = "superseded"
    elif manifest and plan.stop_seqno <= applied:
        state = "applied"
    planned = found.documents["plan.json"].modified if "plan.json" in found.documents else datetime.now(UTC)
    return IntervalState(
        generation=plan.generation,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        state=state,
        purged="purged.json" in found.documents,
        age=max(0, int((datetime.now(UTC) - planned).total_seconds())),
        rows=sum(file.rows for file in files),
        inserts=sum(file.inserts for file in files),
        updates=sum(file.updates for file in files),
        deletes=sum(file.deletes for file in files),
        bytes=sum(file.bytes for file in files),
        tables=len({file.name for file in files}),
    )
