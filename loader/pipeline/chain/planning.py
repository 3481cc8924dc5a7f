"""Planning: where the next intervals of a chain stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape
from typing import Any

from pydantic import BaseModel, ConfigDict
from pymysql.connections import Connection

from loader.errors import UsageError
from loader.extract.spec import TransportSettings
from loader.model.identity import Identity
from loader.model.position import Interval, Position
from loader.model.table import TableName, TableSchema
from loader.pipeline.chain import table_registry
from loader.pipeline.chain.chain_begin import current_generation
from loader.pipeline.chain.failover import generation_transport
from loader.pipeline.chain.limits import find_stops
from loader.pipeline.chain.plan_chain import chain_of
from loader.settings import IntervalLimits, SourceSettings
from loader.source import server_facts
from loader.source.continuity import another_server_error, check_identity
from loader.source.foreign_keys import find_parents, find_unlogged_tables, logs_cascades
from loader.source.log_filters import check_filters
from loader.source.memory_tables import find_memory_tables
from loader.source.schemas import find_tables, read_ambiguous_tables
from loader.source.side_effects import SideEffects, read_side_effects
from loader.source.update_triggers import find_virtual_tables
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Plan, TableFilter
from loader.staging.entries import UnloggedChanges
from loader.staging.filters import CapturedTables
from loader.staging.notes.skips import skips_between
from loader.staging.schemas import SchemaStore
from loader.transport.segments import check_whole
from loader.transport.server.connection import connected, log_sizes


class PlannedBeyond(UsageError):
    """Intervals up to a later position than the wanted one are planned or staged already."""


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


def plan_interval(
    settings: SourceSettings, run: str = "", until: Position | None = None, server: Identity | None = None
) -> IntervalChosen | None:
    """Return the intervals to work on: all unfinished ones, or else new ones up to the current end of the log.

    New log is planned at once, in as many intervals as the limits require. A `run` of an orchestrator that was given
    intervals before gets the same ones. With `until`, a transaction boundary, no interval ends after it. The result is
    None if nothing was ever planned and the log has nothing new. If another server is followed that has logged nothing
    since, the result is the newest interval of the server before. `server` is the server that `until` is a position of.

    Raises:
        LoaderError: the source was never loaded or cannot be read, or its log does not continue the chain.
        AnotherServer: `until` is a position of another server.
        PlannedBeyond: intervals up to a later position than `until` are planned or staged already.
    """
    chain = chain_of(settings)
    if run and (given := _find_run(chain, run)):
        return _chosen(*given, new=False)
    newest = chain.require_generation()
    with connected(settings.server) as connection:
        server_facts.check_settings(connection)
    generation = current_generation(settings, chain, newest)
    if server and not server.same_server(generation.identity):
        raise another_server_error(generation.identity, server)
    if unfinished := chain.unfinished(generation.name):
        return _note_for_run(chain, _ending_by(unfinished, until), run, new=False)
    head = chain.newest_plan(generation.name)
    start = head.interval.stop if head else generation.start_position
    if until is not None and until < start:
        raise _too_late_error(settings.name, until, start)
    log = generation_transport(settings, generation)
    digest = chain.newest_checkpoint(generation).schemas
    previous = head or _newest_plan_before(chain, generation)
    with connected(settings.server) as connection:
        check_identity(connection, generation.identity)  # an address can lead to several servers
        read = _read_source(connection, settings, log, start, SchemaStore(chain.store, settings.name), digest, previous)
    stop = read.stop if until is None else min(read.stop, until)
    if stop == start:
        newest_plan = head or _newest_followed_plan(chain, generation)
        return _note_for_run(chain, [newest_plan], run, new=False) if newest_plan else None
    template = Plan(
        source=settings.name,
        generation=generation.name,
        identity=generation.identity,
        start=str(start),
        stop=str(read.stop),
        shift=generation.shift,
        **settings.shaping() | {"tables": _exclude(settings.tables, read.sequences)},
        ambiguous=tuple(schema.as_dict() for schema in read.ambiguous),
        schemas=read.late,
        schemas_at=str(read.stop) if read.late else "",
        side_effects=read.side_effects.named if read.side_effects else (),
        side_effects_of_writes=read.side_effects.written if read.side_effects else (),
        side_effects_at="" if read.side_effects is None else str(read.stop),
        folds=read.folds,
        unlogged_cascades=not read.logs_cascades,
        cascading=tuple(map(str, read.cascading)),
        unlogged=read.unlogged,
        unlogged_before=read.unlogged_before,
        unlogged_at=str(read.stop) if read.unlogged.memory else "",
    )
    plans = _extend_chain(chain, generation, template, Interval(start, stop), log, settings.interval)
    return _note_for_run(chain, plans, run, new=True)


def _newest_followed_plan(chain: PlanChain, generation: Generation) -> Plan | None:
    """Return the plan of the last interval that a generation without plans continues; None after a gap or without one.

    Tables may be behind in it: what was staged there may not be merged yet.
    """
    for newer in reversed(chain.lineage(generation.name)):
        if newer.follows is None or newer.gap:
            return None
        if found := chain.manifest_stopping_at(newer.follows.name, newer.follows.stop_seqno):
            return chain.plan(found.generation, found.start_seqno)
    return None


def _ending_by(plans: Sequence[Plan], until: Position | None) -> Sequence[Plan]:
    """Return the plans that stop at a position or before it.

    Raises:
        PlannedBeyond: the first plan stops after it.
    """
    found = [plan for plan in plans if until is None or plan.interval.stop <= until]
    if not found and until is not None:
        raise _too_late_error(plans[0].source, until, plans[0].interval.stop)
    return found


def _too_late_error(source: str, until: Position, planned: Position) -> PlannedBeyond:
    return PlannedBeyond(
        f"the log is planned up to {planned}, which is after {until}",
        why="a planned interval does not change",
        hint=f"loader run --until {planned}",
        source=source,
    )


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
    chain: PlanChain,
    generation: Generation,
    template: Plan,
    backlog: Interval,
    log: TransportSettings,
    limits: IntervalLimits,
) -> list[Plan]:
    """Add the plans of a backlog to the chain, in log order, and return them.

    The template ends where the facts in it were read.

    If another process added a plan first that stops elsewhere, its plan is kept, and the rest of the backlog waits for
    the next run.
    """
    plans: list[Plan] = []
    start = str(backlog.start)
    skips = skips_between(chain.store, chain.source, generation.name)
    for stop in find_stops(log.open(), backlog, limits):
        change: dict[str, object] = {"start": start, "stop": str(stop)}
        if generation.known_until and Position.parse(start) < Position.parse(generation.known_until):
            change["read_before"] = generation.gtids
        if change["stop"] != template.stop:
            change |= {"side_effects": (), "side_effects_of_writes": (), "side_effects_at": ""}
        plan = template.model_copy(update=change)
        plan = plan.model_copy(update={"skips": skips(plan.start_seqno, plan.stop_seqno)})
        plans.append(chain.extend(plan))
        start = plans[-1].stop
        if start != str(stop):
            break
    return plans


@dataclass(frozen=True)
class _SourceState:
    """What a plan must know of the server and its tables, read before the end of the log.

    Attributes:
        stop: the end of the log.
        ambiguous, late, side_effects, folds: see Plan.ambiguous, Plan.schemas, SideEffects and Plan.folds.
        logs_cascades: see loader.source.foreign_keys.
        cascading, unlogged, unlogged_before: see Plan.cascading, Plan.unlogged and Plan.unlogged_before.
        sequences: of MariaDB, if the log does not tell them from tables; see `find_new_sequences`.
    """

    stop: Position
    ambiguous: list[TableSchema]
    late: str
    side_effects: SideEffects | None
    folds: bool
    logs_cascades: bool
    cascading: list[TableName]
    unlogged: UnloggedChanges
    unlogged_before: UnloggedChanges
    sequences: list[TableName]


def _read_source(
    connection: Connection[Any],
    settings: SourceSettings,
    log: TransportSettings,
    start: Position,
    schemas: SchemaStore,
    digest: str,
    previous: Plan | None,
) -> _SourceState:
    """Read from the server what a plan needs.

    Args:
        connection: to the server.
        settings: of the source.
        log: where its log is read.
        start: of the plan.
        schemas: the stored schema documents.
        digest: of the schema document at the position up to which the log is staged.
        previous: the newest plan before.

    Raises:
        LogLags: the local copy of the log is shorter than the server's log.
        WrongSettings: the log leaves captured tables out.
    """
    captured, named = CapturedTables(settings.tables), server_facts.logs_names(connection)
    check_filters(connection, captured)
    ambiguous = read_ambiguous_tables(connection, captured)
    late = "" if named else table_registry.store_new_tables(connection, settings, schemas, digest)
    sequences = [] if named else table_registry.find_new_sequences(connection, captured, schemas.get(digest))
    side_effects, folds = read_side_effects(connection), server_facts.folds_names(connection)
    logged = logs_cascades(connection)
    # Without any plan cascades may not be logged: then the loads, which come before, have checked it.
    stopped = previous is not None and not previous.unlogged_cascades and not logged
    cascading = find_unlogged_tables(connection, find_tables(connection, captured)) if stopped else []
    unlogged_before = _still_there(connection, captured, previous)
    virtual = find_virtual_tables(connection, captured)
    unlogged = UnloggedChanges(
        parents=find_parents(connection, captured) if logged else {},
        memory=find_memory_tables(connection, captured),
        virtual=virtual.virtual,
        triggered=virtual.triggered,
    )
    stop = max(start, server_facts.log_end(connection))
    sizes = log_sizes(connection)
    if log.kind == "file" and stop > start:
        check_whole(Interval(start, stop), log.open(), sizes)
    return _SourceState(
        stop, ambiguous, late, side_effects, folds, logged, cascading, unlogged, unlogged_before, sequences
    )


def _still_there(connection: Connection[Any], captured: CapturedTables, previous: Plan | None) -> UnloggedChanges:
    """Return what the previous plan knows of unlogged changes, without MEMORY tables that no longer exist."""
    if previous is None or not previous.unlogged.memory:
        return previous.unlogged if previous else UnloggedChanges()
    names = set(map(str, find_tables(connection, captured)))
    return previous.unlogged.model_copy(update={"memory": tuple(filter(names.__contains__, previous.unlogged.memory))})


def _newest_plan_before(chain: PlanChain, generation: Generation) -> Plan | None:
    """Return the newest plan of the generations that a generation without plans continues."""
    older = (chain.newest_plan(one.name) for one in reversed(chain.lineage(generation.name)[:-1]))
    return next(filter(None, older), None)


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
