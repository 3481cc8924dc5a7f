"""How a source, its intervals and its tables stand, for people."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline.planning import chain_of, preflight
from loader.pipeline.retention import source_runway
from loader.settings import SourceSettings
from loader.source.retention import Runway
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest, Plan, Published
from loader.transport.connection import connected, log_sizes


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
    """A source at a glance.

    `behind` counts bytes of log after the last applied position, over the files between; `runway` is of the oldest log
    file that is not staged.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    server: str
    log_end: str
    planned: str
    staged: str
    applied: str
    behind: int
    runway: Runway
    tables: tuple[TableState, ...]


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
    identity, end = preflight(settings)
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
        runway=source_runway(settings),
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
