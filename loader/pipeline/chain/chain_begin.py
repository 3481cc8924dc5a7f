"""The beginning of a source's chain, and of its next generation."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, GapError, UnsupportedError, UsageError
from loader.model.identity import Identity
from loader.model.position import SEQNO_UNIT, Interval, Position
from loader.pipeline.chain import table_registry
from loader.pipeline.chain.failover import (
    can_follow,
    check_continuity,
    check_start,
    follow_server,
    generation_transport,
    log_checkpoint,
    set_until,
)
from loader.pipeline.chain.limits import find_stops
from loader.pipeline.chain.log_lookup import find_log_position
from loader.pipeline.chain.plan_chain import chain_of
from loader.reader.seek.position_spec import After, End, parse_place
from loader.settings import SourceSettings
from loader.source import server_facts
from loader.source.continuity import AnotherServer, LogRenamed
from loader.staging.chain import PlanChain
from loader.staging.documents import Followed, Generation
from loader.staging.schemas import Schemas, SchemaStore
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected


def begin(settings: SourceSettings) -> Generation:
    """Return the source's current generation. The first generation starts at the current end of the log.

    Raises:
        LoaderError: the server cannot be read, or its log does not continue the chain.
    """
    chain = chain_of(settings)
    existing = chain.generation()
    if existing:
        check_server(settings)
        return current_generation(settings, chain, existing)
    return chain.begin(_at_the_end(settings, chain))


def begin_again(settings: SourceSettings) -> Generation:
    """Return the generation in which all tables are to be loaded again.

    If the chain is broken, this is a new generation at the end of the log. A chain is broken if the log does not
    continue it, if planned intervals were never staged, which are then given up, or if no further interval can be
    planned. A table that is not loaded again stops with that reason, unless the server no longer has it.

    Raises:
        BinlogFormatError, UnsupportedError: the current file of the log cannot be read up to its end.
        LoaderError: the server cannot be read.
    """
    chain = chain_of(settings)
    old = chain.generation()
    if old is None:
        return begin(settings)
    try:
        current = begin(settings)
    except (GapError, BinlogFormatError, UnsupportedError) as error:
        current, broken = old, ": ".join(filter(None, (error.what, error.why)))
    else:
        broken = _explain_unreadable(settings, chain, current)
    if not broken:
        return current
    try:
        end = _at_the_end(settings, chain)
    except (BinlogFormatError, UnsupportedError) as error:
        raise error.with_hint(
            f"on the server: FLUSH BINARY LOGS, which begins another file; then {LOAD_ALL_AGAIN}"
        ) from error
    shift = chain.newest_seqno(current) // SEQNO_UNIT + 1 - end.start_position.lognum
    stop = chain.newest_checkpoint(current).position.seqno(current.shift)
    follows = Followed(name=current.name, stop_seqno=stop)
    name = chain.name_after(current)
    after = {"name": name, "shift": shift, "follows": follows, "gap": broken, "tables": settings.tables}
    return chain.begin(end.model_copy(update=after))


def _explain_unreadable(settings: SourceSettings, chain: PlanChain, generation: Generation) -> str:
    """Return why no interval can be staged after what is staged; empty if the log can be read there."""
    if given_up := chain.unfinished(generation.name):
        return f"planned intervals from {given_up[0].start} on were never staged"
    head, end = chain.newest_plan(generation.name), check_server(settings)[1]
    start = head.interval.stop if head else generation.start_position
    try:
        if start < end:
            log = generation_transport(settings, generation).open()
            next(find_stops(log, Interval(start, end), settings.interval))
    except (BinlogFormatError, UnsupportedError) as error:
        return ": ".join(filter(None, (error.what, error.why)))
    return ""


def begin_at(settings: SourceSettings, place: str) -> Generation:
    """Begin the chain of a source at a place in its log, before any table is loaded.

    Tables that the log creates from there on need no initial load.

    Args:
        settings: of the source.
        place: see `find_log_position`.

    Raises:
        UsageError: the chain has begun elsewhere, the log lacks column names, or a GTID set does not tell the place.
        LoaderError: the server cannot be read, or its log does not have the place.
    """
    chain, named_place = chain_of(settings), parse_place(place)
    if isinstance(named_place, End) and not chain.generations():
        return begin(settings)
    position = find_log_position(settings, place)
    if begun := chain.generations():
        return _begun_there(begun[0], position)
    if isinstance(named_place, After):
        check_start(settings, str(named_place.gtids), position)
    with connected(settings.server) as connection:
        identity = check_identity(connection)
        schemas, end = table_registry.read_at_log_end(connection, settings)
        named = server_facts.logs_names(connection)
    if position != end:
        _check_names(settings, position, named)
        schemas = _unknown_before(end, schemas)
    first = _first_generation(settings, chain, identity, position, schemas)
    if isinstance(named_place, After) and position < end:
        given = str(named_place.gtids)
        until = set_until(settings, Interval(position, end), first.gtids, given)
        first = first.model_copy(update={"gtids": given, "known_until": until})
    return chain.begin(first)


def _begun_there(first: Generation, position: Position) -> Generation:
    """Return the first generation of a chain if it begins at the position.

    Raises:
        UsageError: it begins elsewhere.
    """
    if first.start_position == position:
        return first
    raise UsageError(
        f"the chain of the source begins at {first.start}, so it cannot begin at {position}",
        why="what is staged and applied continues from there",
        hint="load tables with: loader initial-load; go over a part of the log again with: loader replay",
        source=first.source,
    )


def _check_names(settings: SourceSettings, position: Position, named: bool) -> None:
    if not named:
        raise UsageError(
            "the log has no column names, so a chain can only begin at its end",
            why="the columns that tables had at another position are unknown",
            hint="loader begin --at end; or set binlog_row_metadata = FULL, and begin at a position after that",
            source=settings.name,
            position=position,
        )


def _unknown_before(end: Position, schemas: Schemas) -> Schemas:
    """Return the document of a position before `end`, where the definitions of the tables are unknown."""
    why = f"the chain begins before {end}, where the columns were read"
    unknown = (one.model_copy(update={"definition": None, "charset": "", "why": why}) for one in schemas.tables)
    return Schemas(tables=tuple(unknown), folds=schemas.folds)


def _at_the_end(settings: SourceSettings, chain: PlanChain) -> Generation:
    """Return a first generation that begins at the end of the server's log."""
    with connected(settings.server) as connection:
        identity = check_identity(connection)
        schemas, end = table_registry.read_at_log_end(connection, settings)
    return _first_generation(settings, chain, identity, end, schemas)


def _first_generation(
    settings: SourceSettings, chain: PlanChain, identity: Identity, start: Position, schemas: Schemas
) -> Generation:
    here = log_checkpoint(settings, start)
    return Generation(
        source=settings.name,
        name=chain.name_after(None),
        identity=identity,
        start=str(start),
        gtids=here.gtids,
        mark=here.mark,
        schemas=SchemaStore(chain.store, settings.name).put(schemas),
    )


def check_server(settings: SourceSettings) -> tuple[Identity, Position]:
    """Check that the source's log can be read; return the server's identity and the end of its log."""
    return check_address(settings.server)


def check_address(server: ServerAddress) -> tuple[Identity, Position]:
    """Check that a server's log can be read; return the server's identity and the end of its log."""
    with connected(server) as connection:
        return check_identity(connection), server_facts.log_end(connection)


def check_identity(connection: Connection[Any]) -> Identity:
    """Return the server's identity after checking that its log can be read."""
    identity = server_facts.read_identity(connection)
    server_facts.check_version(identity)
    server_facts.check_settings(connection)
    return identity


def current_generation(settings: SourceSettings, chain: PlanChain, generation: Generation) -> Generation:
    """Return the generation, or its continuation on the current server of the source.

    Raises:
        GapError: the log does not continue.
    """
    try:
        check_continuity(settings, generation, chain.newest_checkpoint(generation))
    except (AnotherServer, LogRenamed) as reason:
        if not can_follow(generation, reason):
            raise
        return follow_server(settings, chain, generation)
    return generation
