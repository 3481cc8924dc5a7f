"""The use cases, and the only module that knows the order of the stages.

    initial load:  begin -> snapshot job -> load job
    delta:         snapshot position -> extract job -> materialise job

A stage that runs on Spark is described by a Job; whoever calls (command line, Airflow) submits it. Each is safe to run
again at any time: what is done already is found and not done twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import DataError
from loader.extract.spec import ExtractSpec
from loader.materialise.spec import LoadSpec, MaterialiseSpec
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.settings import SourceSettings
from loader.snapshot.spec import SnapshotSpec
from loader.source import inspect
from loader.source.schemas import read_untold
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest, Plan, Published
from loader.staging.filters import Captured
from loader.store.opening import open_store
from loader.transport.connection import connected, log_sizes

_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Job:
    """A Spark application of the loader: its file and what it is told."""

    name: Literal["snapshot", "load", "extract", "materialise"]
    file: Path
    spec: BaseModel


class IntervalChosen(BaseModel):
    """The interval that a delta works on; `new` when it was planned just now."""

    model_config = ConfigDict(frozen=True)

    source: str
    generation: str
    start: str
    stop: str
    start_seqno: int
    stop_seqno: int
    new: bool


class IntervalState(BaseModel):
    """One interval for people: `planned`, `staged`, or `applied` to every table."""

    model_config = ConfigDict(frozen=True)

    start: str
    stop: str
    start_seqno: int
    state: Literal["planned", "staged", "applied"]
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    bytes: int = 0
    tables: int = 0


class TableState(BaseModel):
    """Where a table stood at the newest published record; `exact` once it has passed the end of its initial load."""

    model_config = ConfigDict(frozen=True)

    table: str
    applied_seqno: int
    snapshot: int
    exact: bool


class SourceStatus(BaseModel):
    """A source at a glance. `behind` counts bytes of log after the last applied position, over the files between."""

    model_config = ConfigDict(frozen=True)

    source: str
    server: str
    log_end: str
    planned: str
    staged: str
    applied: str
    behind: int
    tables: tuple[TableState, ...]


def chain_of(settings: SourceSettings) -> PlanChain:
    """The plan chain of a source."""
    return PlanChain(open_store(settings.staging_root), settings.name)


def begin(settings: SourceSettings) -> Generation:
    """The source's generation; the first one starts at the end of the log now.

    Raises:
        LoaderError: the server cannot be read from, or is another one than before.
    """
    chain = chain_of(settings)
    existing = chain.generation()
    identity, end = _preflight(settings, existing)
    if existing:
        return existing
    generation = Generation(source=settings.name, name=chain.first_name(), identity=identity, start=str(end))
    return chain.begin(generation)


def _preflight(settings: SourceSettings, generation: Generation | None) -> tuple[Identity, Position]:
    """Ask the server who it is and whether its log can be read; its identity and the end of its log."""
    with connected(settings.server) as connection:
        identity = inspect.read_identity(connection)
        inspect.check_version(identity)
        inspect.check_settings(connection)
        if generation:
            inspect.check_identity(connection, generation.identity)
        return identity, inspect.log_end(connection)


def snapshot_position(settings: SourceSettings, run: str = "") -> IntervalChosen | None:
    """Choose the interval to work on: an unfinished one first, else a new one up to the end of the log now.

    A `run` (of an orchestrator) that was given an interval before gets the same one. None: nothing was ever planned
    and nothing is in the log.

    Raises:
        LoaderError: the source was never loaded, cannot be read from, or its log does not continue the chain.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    if run and (given := chain.run(generation.name, run)):
        return _chosen(given, new=False)
    head = chain.head(generation.name)
    manifest = chain.manifest(generation.name, head.start_seqno) if head else None
    if head and (head.run == run != "" or not manifest):
        return _noted(chain, head, run, new=False)
    start = head.interval.stop if head else generation.start_position
    stop, untold = _next_stop(settings, generation, start)
    if stop == start:
        return _noted(chain, head, run, new=False) if head else None
    plan = Plan(
        source=settings.name,
        generation=generation.name,
        identity=generation.identity,
        start=str(start),
        stop=str(stop),
        shift=generation.shift,
        tables=settings.tables,
        update_rows=settings.update_rows,
        undecodable=settings.undecodable,
        part_bytes=settings.part_bytes,
        held=manifest.held if manifest else (),
        untold=tuple(schema.as_dict() for schema in untold),
        run=run,
    )
    return _noted(chain, chain.extend(plan), run, new=True)


def _next_stop(settings: SourceSettings, generation: Generation, start: Position) -> tuple[Position, list[TableSchema]]:
    """The end of the log, proved to continue from `start`; and what the plan is to know of tables, read before it."""
    with connected(settings.server) as connection:
        inspect.check_identity(connection, generation.identity)
        inspect.check_settings(connection)
        inspect.check_log_holds(connection, start)
        untold = read_untold(connection, Captured(settings.tables))
        stop = inspect.log_end(connection)
    if stop < start:
        raise DataError(
            "the server's log ends before the position that was read up to",
            why=f"it ends at {stop}: it was reset or restored",
            hint="load the tables again",
            position=start,
        )
    return stop, untold


def _noted(chain: PlanChain, plan: Plan, run: str, new: bool) -> IntervalChosen:
    if run:
        chain.note_run(plan, run)
    return _chosen(plan, new)


def _chosen(plan: Plan, new: bool) -> IntervalChosen:
    return IntervalChosen(
        source=plan.source,
        generation=plan.generation,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        stop_seqno=plan.stop_seqno,
        new=new,
    )


def extract_job(settings: SourceSettings, start_seqno: int) -> Job:
    """The extraction of the interval that starts there."""
    generation = chain_of(settings).require_generation()
    spec = ExtractSpec(
        source=settings.name,
        generation=generation.name,
        staging_root=settings.staging_root,
        start_seqno=start_seqno,
        transport=settings.transport,
    )
    return Job("extract", _PACKAGE / "extract" / "job.py", spec)


def materialise_job(settings: SourceSettings, through_seqno: int | None = None) -> Job:
    """The materialisation of everything staged up to that stop (None: all that is staged)."""
    generation = chain_of(settings).require_generation()
    spec = MaterialiseSpec(
        source=settings.name,
        generation=generation.name,
        staging_root=settings.staging_root,
        catalog=settings.catalog,
        through_seqno=through_seqno,
    )
    return Job("materialise", _PACKAGE / "materialise" / "job.py", spec)


def snapshot_job(settings: SourceSettings, tables: tuple[str, ...] = ()) -> Job:
    """The reading of the initial load: of the captured tables, or of these only."""
    generation = begin(settings)
    spec = SnapshotSpec(
        source=settings.name,
        generation=generation.name,
        identity=generation.identity,
        shift=generation.shift,
        server=settings.server,
        staging_root=settings.staging_root,
        tables=settings.tables,
        only=tables,
        undecodable=settings.undecodable,
        chunk_rows=settings.chunk_rows,
    )
    return Job("snapshot", _PACKAGE / "snapshot" / "job.py", spec)


def load_job(settings: SourceSettings, manifests: tuple[str, ...]) -> Job:
    """The materialisation of initial loads, by the keys of their manifests."""
    generation = chain_of(settings).require_generation()
    spec = LoadSpec(
        source=settings.name,
        generation=generation.name,
        staging_root=settings.staging_root,
        catalog=settings.catalog,
        manifests=manifests,
    )
    return Job("load", _PACKAGE / "materialise" / "load_job.py", spec)


def intervals(settings: SourceSettings) -> list[IntervalState]:
    """Every interval of the source in order, with its state."""
    chain = chain_of(settings)
    generation = chain.require_generation()
    plans = chain.plans(generation)
    applied = max((p.stop_seqno for plan in plans if (p := _published(chain, plan))), default=0)
    return [_state(plan, chain.manifest(generation.name, plan.start_seqno), applied) for plan in plans]


def _state(plan: Plan, manifest: Manifest | None, applied: int) -> IntervalState:
    if manifest is None:
        return IntervalState(start=plan.start, stop=plan.stop, start_seqno=plan.start_seqno, state="planned")
    files = manifest.files
    return IntervalState(
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        state="applied" if plan.stop_seqno <= applied else "staged",
        inserts=sum(file.inserts for file in files),
        updates=sum(file.updates for file in files),
        deletes=sum(file.deletes for file in files),
        bytes=sum(file.bytes for file in files),
        tables=len({file.name for file in files}),
    )


def _published(chain: PlanChain, plan: Plan) -> Published | None:
    return chain.published(plan.generation, plan.start_seqno)


def status(settings: SourceSettings) -> SourceStatus:
    """Where the source stands.

    Raises:
        LoaderError: the source was never loaded, or the server does not answer.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    plans = chain.plans(generation)
    identity, end = _preflight(settings, generation)
    staged = [p for p in plans if chain.manifest(generation.name, p.start_seqno)]
    records = [record for plan in plans if (record := _published(chain, plan))]
    newest = records[-1] if records else None
    applied = Position.parse(newest.stop) if newest else generation.start_position
    return SourceStatus(
        source=settings.name,
        server=f"{identity.kind} {identity.version} at {settings.server}",
        log_end=str(end),
        planned=plans[-1].stop if plans else generation.start,
        staged=staged[-1].stop if staged else generation.start,
        applied=str(applied),
        behind=_bytes_between(settings, applied, end),
        tables=tuple(
            TableState(
                table=name,
                applied_seqno=table.applied,
                snapshot=table.snapshot,
                exact=newest.stop_seqno >= chain.exact_at(generation.name, TableName.parse(name)),
            )
            for name, table in sorted(newest.tables.items())
        )
        if newest
        else (),
    )


def _bytes_between(settings: SourceSettings, start: Position, stop: Position) -> int:
    if start.lognum == stop.lognum:
        return stop.logpos - start.logpos
    with connected(settings.server) as connection:
        sizes = log_sizes(connection)
    whole = sum(sizes.get(f"{start.basename}.{number:06d}", 0) for number in range(start.lognum, stop.lognum))
    return whole - start.logpos + stop.logpos
