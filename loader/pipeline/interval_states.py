"""Intervals for people: how each stands, all that is known of one, whether its files are what they were."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import zip_longest
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import DataError
from loader.model.table import TableName
from loader.pipeline.planning import chain_of
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain, no_interval
from loader.staging.documents import Generation, Manifest, Plan, Published, StagedFile
from loader.staging.inventory import Stored, attempt_of, inventory, newest_published
from loader.staging.verifying import faults
from loader.store.opening import open_store

State = Literal["planned", "staged", "applied", "superseded"]


class IntervalState(BaseModel):
    """One interval for people.

    Attributes:
        state: `planned`; `staged`, its files are there; `applied`, a published record says that every table has it,
            also those that are quarantined;
            `superseded`, it is of an older generation, behind the place from which the newer one goes on.
        purged: its files were removed once it was applied.
        age: seconds since it was planned.
        behind: tables with records in it, or in staged ones before, that no published record says they have.
        left_out: tables of which rows are missing in it, since nothing tells their columns there.
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
    left_out: tuple[str, ...] = ()


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
    """Every interval of the source in order, of the newest generation and of those that it follows on."""
    chain = chain_of(settings)
    lineage = chain.lineage(chain.require_generation().name)
    store = open_store(settings.staging_root)
    stored = {one.name: inventory(store, settings.name, one.name) for one in lineage}
    behind = _Behind(newest_published(chain, stored))
    return [
        _state(chain, plan, stored[older.name].get(plan.start_seqno, Stored()), behind, newer)
        for older, newer in zip_longest(lineage, lineage[1:])
        for plan in chain.plans(older)
    ]


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
    files = chain_of(settings).files(manifest.generation, start_seqno)
    named = {file.key for file in files}
    attempts = {attempt_of(key) for key in named}
    found = [
        FileFault(file=error.where["file"], fault="lost or changed", why=error.why or error.what)
        for error in faults(store, files)
    ]
    stored = inventory(store, settings.name, manifest.generation).get(start_seqno, Stored())
    in_folders = (info.key for attempt in sorted(attempts) for info in stored.attempts.get(attempt, []))
    return found + [FileFault(file=key, fault="foreign") for key in in_folders if key not in named]


class _Behind:
    """Which tables lack what is staged, interval after interval, by the newest published record."""

    def __init__(self, record: Published | None) -> None:
        self._record = record
        self._tables: set[str] = set()

    def after(self, manifest: Manifest) -> tuple[str, ...]:
        """Those behind up to an interval that follows on those before."""
        if self._record is None or manifest.stop_seqno > self._record.stop_seqno:
            self._tables |= {str(file.name) for file in manifest.files if file.rows}
            self._tables |= {one.table for one in manifest.left_out}
        else:
            self._tables |= self._record.lacking(manifest)
        return tuple(sorted(self._tables))

    def done(self, manifest: Manifest) -> bool:
        """Whether every table has an interval."""
        record = self._record
        return record is not None and manifest.stop_seqno <= record.stop_seqno and not record.lacking(manifest)


def _state(chain: PlanChain, plan: Plan, found: Stored, behind: _Behind, newer: Generation | None) -> IntervalState:
    """How an interval stands; `newer` is the generation that goes on from its own."""
    manifest = chain.manifest(plan.generation, plan.start_seqno) if "manifest.json" in found.documents else None
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
        purged="purged.json" in found.documents,
        age=max(0, int((datetime.now(UTC) - planned).total_seconds())),
        rows=sum(file.rows for file in files),
        inserts=sum(file.inserts for file in files),
        updates=sum(file.updates for file in files),
        deletes=sum(file.deletes for file in files),
        bytes=sum(file.bytes for file in files),
        tables=len({file.name for file in files}),
        behind=behind.after(manifest) if manifest and state != "superseded" else (),
        left_out=tuple(one.table for one in manifest.left_out) if manifest else (),
    )
