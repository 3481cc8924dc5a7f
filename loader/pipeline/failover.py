"""Whether the source's log goes on from where it was read, and if another server has it now, the generation that does.

With GTIDs the place on another server is where its first transaction stands that was not read yet. Without them only a
person can know it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pymysql.connections import Connection

from loader.errors import LOAD_ALL_AGAIN, UsageError
from loader.extract.checkpoint import find_log_difference, read_checkpoint
from loader.extract.gtids.interleaving import find_interleaving
from loader.extract.spec import TransportSettings
from loader.model.gtid import MysqlGtidSet, joined, lacking, parse_gtid_set
from loader.model.position import SEQNO_UNIT, Interval, Position
from loader.settings import SourceSettings
from loader.source import continuity, server_facts
from loader.staging.chain import Checkpoint, PlanChain
from loader.staging.documents import Followed, Generation
from loader.store.registry import open_store
from loader.transport.base import NoPlace, ServerCannotTell, Transport
from loader.transport.segments import lags
from loader.transport.server.connection import connected, log_sizes


def check_continuity(settings: SourceSettings, generation: Generation, checkpoint: Checkpoint) -> None:
    """Raise unless the log goes on from a checkpoint of the generation: the same server, log, and transactions.

    Raises:
        AnotherServer, LogRenamed: a server with GTIDs may be followed there; see `follow`.
        GapError: the log is not what it was, and how.
        LogLags: the server's is, and what is read of it here ends before.
    """
    position, transport = checkpoint.position, generation_transport(settings, generation).open()
    with connected(settings.server) as connection:
        continuity.check_identity(connection, generation.identity)
        archived = _check_log(settings, transport, connection, position)
        continuity.check_executed(connection, position, checkpoint.gtids, same_server=True)
        if not archived:
            continuity.check_not_purged(connection, checkpoint.gtids)
    if settings.transport.kind == "file" and (size := transport.size(position.file)) < position.logpos:
        raise lags(position.file, size, position.logpos)
    if difference := find_log_difference(transport, checkpoint):
        raise continuity.log_replaced_error(position, difference)


def generation_transport(settings: SourceSettings, generation: Generation) -> TransportSettings:
    """Where the log of a generation is read."""
    return settings.transport.model_copy(update={"identity": generation.identity})


def _check_log(settings: SourceSettings, transport: Transport, connection: Connection[Any], position: Position) -> bool:
    """Raise unless the server's log holds a position, or the archive all that is purged behind it; whether it is so."""
    try:
        continuity.check_log_holds(connection, position)
    except continuity.LogPurged as purged:
        if not settings.transport.archive or purged.begins is None:
            raise
        transport.segments(Interval(position, purged.begins))
        return True
    return False


def follow_server(settings: SourceSettings, chain: PlanChain, old: Generation, accepted: str = "") -> Generation:
    """The generation that goes on from all that is staged of `old`, on the server that the source has now.

    `accepted`: transactions that only the new server has, which are passed over.

    Raises:
        AnotherServer: without GTIDs on both sides nobody but a person can tell where.
        Errant: the server has other transactions of its own before some that were read.
        ServerRestored: the server lacks transactions that were read.
        LogPurged: it has deleted transactions that were not.
    """
    known = chain.newest_checkpoint(old)
    with connected(settings.server) as connection:
        executed = continuity.executed_gtids(connection)
        if not known.gtids or not executed:
            why = "either the log that was read has no GTIDs, or this server's has none"
            raise continuity.unfollowed_error(settings.name, known.position, why)
        known = replace(known, gtids=str(joined(known.gtids, parse_gtid_set(accepted)))) if accepted else known
        continuity.check_executed(connection, known.position, known.gtids)
        continuity.check_not_purged(connection, known.gtids)
        end = server_facts.log_end(connection)
    try:
        found = _first_outside(settings, known.gtids)
    except NoPlace as error:
        raise continuity.unfollowed_error(settings.name, known.position, error.what) from error
    except ServerCannotTell as error:
        raise continuity.purged_unread_error(error.why or error.what) from error
    return _begun(settings, chain, old, known, found or end, accepted)


def follow_accepting(settings: SourceSettings, gtids: str) -> Generation:
    """A new generation on the server that the source has now, which passes over transactions that only this one has.

    Raises:
        UsageError: the text is no GTID set, the server has no such transactions, or it is the one that was followed.
        GapError: as `follow`.
    """
    chain = PlanChain(open_store(settings.staging_root), settings.name)
    old = chain.require_generation()
    accepted = str(parse_gtid_set(gtids))
    with connected(settings.server) as connection:
        if server_facts.read_identity(connection).same_server(old.identity):
            raise UsageError(
                "the server of the source is the one that is followed", hint="loader run", source=settings.name
            )
        if absent := lacking(accepted, continuity.executed_gtids(connection)):
            raise UsageError(f"transactions {absent} are not on this server", source=settings.name)
    return follow_server(settings, chain, old, accepted)


def follow_to(settings: SourceSettings, position: Position) -> Generation:
    """A new generation that goes on at a position which a person vouches for.

    Raises:
        BinlogFormatError: it is no transaction boundary.
        UsageError: by its GTIDs, transactions before it were not read.
    """
    chain = PlanChain(open_store(settings.staging_root), settings.name)
    old = chain.require_generation()
    return _begun(settings, chain, old, chain.newest_checkpoint(old), position)


def _first_outside(settings: SourceSettings, gtids: str) -> Position | None:
    # Not at the top: the dump's kernel is loaded on import, for which most plans have no use.
    from loader.transport.gtid_search import first_outside

    return first_outside(settings.server, parse_gtid_set(gtids))


def _begun(
    settings: SourceSettings,
    chain: PlanChain,
    old: Generation,
    known: Checkpoint,
    position: Position,
    accepted: str = "",
) -> Generation:
    with connected(settings.server) as connection:
        identity = server_facts.read_identity(connection)
        server_facts.check_version(identity)
        server_facts.check_settings(connection)
        continuity.check_log_holds(connection, position)
        size, end = log_sizes(connection)[position.file], server_facts.log_end(connection)
        executed = continuity.executed_gtids(connection)
    here = read_checkpoint(settings.transport.open(), position, size)
    if unread := lacking(here.gtids, known.gtids) if known.gtids else "":
        raise UsageError(
            "transactions before that position were not read yet",
            why=f"they are {unread}",
            hint=f"give an earlier position; or {LOAD_ALL_AGAIN}",
            position=position,
        )
    # A server that does not know the set cannot be checked by it later: the position alone counts.
    read = known.gtids if known.gtids and not lacking(known.gtids, executed) else here.gtids
    generation = Generation(
        source=old.source,
        name=chain.name_after(old),
        identity=identity,
        start=str(position),
        shift=chain.newest_seqno(old) // SEQNO_UNIT + 1 - position.lognum,
        gtids=read,
        mark=here.mark,
        schemas=known.schemas,
        follows=Followed(name=old.name, stop_seqno=known.position.seqno(old.shift)),
        accepted=accepted,
        known_until=_known_until(settings, Interval(position, end), here.gtids, read) if position < end else "",
    )
    return chain.begin(generation)


def _known_until(settings: SourceSettings, log: Interval, before: str, known: str) -> str:
    """The position up to which the log behind a place has transactions that were read; empty where it has none.

    Raises:
        Errant: before them are some that only this server has.
    """
    if not lacking(known, before):
        return ""
    found = find_interleaving(settings.transport.open(), log, before, known)
    read, others = parse_gtid_set(known), parse_gtid_set(found.others)
    if isinstance(read, MysqlGtidSet) and isinstance(others, MysqlGtidSet):
        own = {source: ranges for source, ranges in others.ranges.items() if source not in read.ranges}
        if own:
            raise continuity.errant_error(settings.name, str(MysqlGtidSet(own)))
    return str(found.until)
