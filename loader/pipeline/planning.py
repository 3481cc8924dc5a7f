"""Planning: where a chain begins, and where its next intervals stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from typing import Any

from pydantic import BaseModel, ConfigDict
from pymysql.connections import Connection

from loader.errors import GapError
from loader.extract.checkpoint import read_checkpoint
from loader.extract.spec import TransportSettings
from loader.model.identity import Identity
from loader.model.position import SEQNO_UNIT, Interval, Position
from loader.model.table import TableName, TableSchema
from loader.pipeline import table_registry
from loader.pipeline.failover import check_continuity, follow_server, generation_transport
from loader.pipeline.limits import find_stops
from loader.settings import IntervalLimits, SourceSettings
from loader.source import server_facts
from loader.source.continuity import AnotherServer, LogRenamed
from loader.source.foreign_keys import logs_cascades
from loader.source.schemas import find_sequences, read_ambiguous_tables
from loader.source.side_effects import read_side_effects
from loader.staging.chain import PlanChain
from loader.staging.documents import Followed, Generation, Plan, TableFilter
from loader.staging.filters import CapturedTables
from loader.staging.schemas import SchemaStore
from loader.store.registry import open_store
from loader.transport.segments import check_whole
from loader.transport.server.connection import connected, log_sizes


class IntervalChosen(BaseModel):
    """The first interval that a delta works on. `new`: it was planned by this call.

    Attributes:
        through_seqno: the stop of the last planned interval; the delta takes all intervals up to it, as far as its time
            allows.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    generation: str
    start: str
    stop: str
    start_seqno: int
    stop_seqno: int
    through_seqno: int
    new: bool


def chain_of(settings: SourceSettings) -> PlanChain:
    """Return the plan chain of a source."""
    return PlanChain(open_store(settings.staging_root), settings.name)


def begin(settings: SourceSettings) -> Generation:
    """Return the source's current generation. The first generation starts at the current end of the log.

    Raises:
        LoaderError: the server cannot be read, or its log does not continue the chain.
    """
    chain = chain_of(settings)
    existing = chain.generation()
    if existing:
        check_server(settings)
        return _current(settings, chain, existing)
    return chain.begin(_at_the_end(settings, chain))


def begin_again(settings: SourceSettings) -> Generation:
    """Return the generation in which all tables are to be loaded again.

    If the chain is broken, this is a new generation at the end of the log. A chain is broken if the log does not
    continue it, or if planned intervals were never staged, which are then given up. A table that is not loaded again
    stops with that reason, unless the server no longer has it.

    Raises:
        LoaderError: the server cannot be read.
    """
    chain = chain_of(settings)
    old = chain.generation()
    if old is None:
        return begin(settings)
    try:
        current = begin(settings)
    except GapError as error:
        current, broken = old, ": ".join(filter(None, (error.what, error.why)))
    else:
        given_up = chain.unfinished(current.name)
        broken = f"planned intervals from {given_up[0].start} on were never staged" if given_up else ""
    if not broken:
        return current
    end = _at_the_end(settings, chain)
    shift = chain.newest_seqno(current) // SEQNO_UNIT + 1 - end.start_position.lognum
    stop = chain.newest_checkpoint(current).position.seqno(current.shift)
    follows = Followed(name=current.name, stop_seqno=stop)
    name = chain.name_after(current)
    return chain.begin(end.model_copy(update={"name": name, "shift": shift, "follows": follows, "gap": broken}))


def _at_the_end(settings: SourceSettings, chain: PlanChain) -> Generation:
    """Return a first generation that begins at the end of the server's log."""
    with connected(settings.server) as connection:
        identity = _check_identity(connection)
        schemas, end = table_registry.read_at_log_end(connection, settings)
    here = read_checkpoint(settings.transport.open(), end, end.logpos)
    return Generation(
        source=settings.name,
        name=chain.name_after(None),
        identity=identity,
        start=str(end),
        gtids=here.gtids,
        mark=here.mark,
        schemas=SchemaStore(chain.store, settings.name).put(schemas),
    )


def check_server(settings: SourceSettings) -> tuple[Identity, Position]:
    """Check that the server's log can be read; return the server's identity and the end of its log."""
    with connected(settings.server) as connection:
        return _check_identity(connection), server_facts.log_end(connection)


def _check_identity(connection: Connection[Any]) -> Identity:
    """Return the server's identity after checking that its log can be read."""
    identity = server_facts.read_identity(connection)
    server_facts.check_version(identity)
    server_facts.check_settings(connection)
    return identity


def _current(settings: SourceSettings, chain: PlanChain, generation: Generation) -> Generation:
    """Return the generation, or its continuation on the current server of the source.

    Raises:
        GapError: the log does not continue.
    """
    try:
        check_continuity(settings, generation, chain.newest_checkpoint(generation))
    except (AnotherServer, LogRenamed):
        return follow_server(settings, chain, generation)
    return generation


def plan_interval(settings: SourceSettings, run: str = "") -> IntervalChosen | None:
    """Return the intervals to work on: all unfinished ones, or else new ones up to the current end of the log.

    New log is planned at once, in as many intervals as the limits require. A `run` of an orchestrator that was given
    intervals before gets the same ones. The result is None if nothing was ever planned and the log has nothing new.

    Raises:
        LoaderError: the source was never loaded or cannot be read, or its log does not continue the chain.
    """
    chain = chain_of(settings)
    if run and (given := _find_run(chain, run)):
        return _chosen(*given, new=False)
    newest = chain.require_generation()
    with connected(settings.server) as connection:
        server_facts.check_settings(connection)
    generation = _current(settings, chain, newest)
    if unfinished := chain.unfinished(generation.name):
        return _note_for_run(chain, unfinished, run, new=False)
    head = chain.newest_plan(generation.name)
    start = head.interval.stop if head else generation.start_position
    log = generation_transport(settings, generation)
    digest = chain.newest_checkpoint(generation).schemas
    read = _read_source(settings, log, start, SchemaStore(chain.store, settings.name), digest)
    stop = read.stop
    if stop == start:
        return _note_for_run(chain, [head], run, new=False) if head else None
    template = Plan(
        source=settings.name,
        generation=generation.name,
        identity=generation.identity,
        start=str(start),
        stop=str(stop),
        shift=generation.shift,
        **settings.shaping() | {"tables": _exclude(settings.tables, read.sequences)},
        untold=tuple(schema.as_dict() for schema in read.untold),
        schemas=read.late,
        schemas_at=str(stop) if read.late else "",
        side_effects=read.side_effects or (),
        side_effects_at="" if read.side_effects is None else str(stop),
        folds=read.folds,
        unlogged_cascades=not read.logs_cascades,
    )
    return _note_for_run(chain, _extend_chain(chain, generation, template, log, settings.interval), run, new=True)


def _find_run(chain: PlanChain, run: str) -> tuple[Plan, int] | None:
    """Return the first plan that a run was given before, and the stop seqno of its last plan; None for a new run.

    Intervals that a newer generation superseded no longer belong to the run. None if all of them were superseded.
    """
    for generation in reversed(chain.generations()):
        counts = chain.valid_until(generation)
        if (found := chain.find_run(generation.name, run)) and found[0].stop_seqno <= counts:
            return found[0], min(found[1], counts)
    return None


def unfinished(settings: SourceSettings) -> list[IntervalChosen]:
    """Return the intervals that are planned and not staged, in order."""
    chain = chain_of(settings)
    plans = chain.unfinished(chain.require_generation().name)
    return [_chosen(plan, plan.stop_seqno, new=False) for plan in plans]


def _extend_chain(
    chain: PlanChain, generation: Generation, backlog: Plan, log: TransportSettings, limits: IntervalLimits
) -> list[Plan]:
    """Add the plans of a backlog to the chain, in log order, and return them.

    If another process added a plan first that stops elsewhere, its plan is kept, and the rest of the backlog waits for
    the next run.
    """
    plans: list[Plan] = []
    start = backlog.start
    for stop in find_stops(log.open(), backlog.interval, limits):
        change: dict[str, object] = {"start": start, "stop": str(stop)}
        if generation.known_until and Position.parse(start) < Position.parse(generation.known_until):
            change["read_before"] = generation.gtids
        if change["stop"] != backlog.stop:
            change |= {"side_effects": (), "side_effects_at": ""}
        plans.append(chain.extend(backlog.model_copy(update=change)))
        start = plans[-1].stop
        if start != str(stop):
            break
    return plans


@dataclass(frozen=True)
class _SourceState:
    """What a plan must know of the server and its tables, read before the end of the log.

    Attributes:
        stop: the end of the log.
        untold, late, side_effects, folds: see Plan.untold, Plan.schemas, Plan.side_effects and Plan.folds.
        logs_cascades: see loader.source.foreign_keys.
        sequences: of MariaDB, if the log does not tell them from tables.
    """

    stop: Position
    untold: list[TableSchema]
    late: str
    side_effects: tuple[str, ...] | None
    folds: bool
    logs_cascades: bool
    sequences: list[TableName]


def _read_source(
    settings: SourceSettings, log: TransportSettings, start: Position, schemas: SchemaStore, digest: str
) -> _SourceState:
    """Read from the server what a plan needs.

    `digest`: of the schema document at the position up to which the log is staged.

    Raises:
        LogLags: the local copy of the log is shorter than the server's log.
    """
    with connected(settings.server) as connection:
        captured, named = CapturedTables(settings.tables), server_facts.logs_names(connection)
        untold = read_ambiguous_tables(connection, captured)
        late = "" if named else table_registry.store_new_tables(connection, settings, schemas, digest)
        sequences = [] if named else find_sequences(connection, captured)
        side_effects, folds = read_side_effects(connection), server_facts.folds_names(connection)
        logged = logs_cascades(connection)
        stop = max(start, server_facts.log_end(connection))
        sizes = log_sizes(connection)
    if log.kind == "file" and stop > start:
        check_whole(Interval(start, stop), log.open().size, sizes)
    return _SourceState(stop, untold, late, side_effects, folds, logged, sequences)


def _exclude(tables: TableFilter, names: list[TableName]) -> TableFilter:
    return tables.model_copy(update={"exclude": (*tables.exclude, *(escape(str(name)) for name in names))})


def _note_for_run(chain: PlanChain, plans: Sequence[Plan], run: str, new: bool) -> IntervalChosen:
    """Return the intervals as chosen, and note them for the orchestrator's run."""
    first, through_seqno = plans[0], plans[-1].stop_seqno
    if run:
        chain.note_run(first, through_seqno, run)
    return _chosen(first, through_seqno, new)


def _chosen(plan: Plan, through_seqno: int, new: bool) -> IntervalChosen:
    return IntervalChosen(
        source=plan.source,
        generation=plan.generation,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        stop_seqno=plan.stop_seqno,
        through_seqno=through_seqno,
        new=new,
    )
