"""Checks that the source's log continues where reading stopped, and follows it to another server.

With GTIDs, reading continues on the new server at its first transaction that was not read. Without GTIDs only an
operator can know that position.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pymysql.connections import Connection

from loader.errors import LOAD_ALL_AGAIN, GapError, UsageError
from loader.extract.checkpoint import find_log_difference, read_checkpoint
from loader.extract.gtids.interleaved_transactions import find_anonymous_before, find_interleaving, find_repeated
from loader.extract.spec import TransportSettings
from loader.model.gtid import (
    GtidSet,
    MariadbGtid,
    MariadbGtidSet,
    MysqlGtidSet,
    Ranges,
    mariadb_set,
    missing_gtids,
    parse_gtid_set,
    union_gtids,
)
from loader.model.position import SEQNO_UNIT, Interval, Position
from loader.pipeline.chain.plan_chain import chain_of
from loader.reader.files.log_walk import FIRST
from loader.schema.history import unknown_table
from loader.settings import SourceSettings
from loader.source import continuity, server_facts
from loader.staging.chain import Checkpoint, PlanChain
from loader.staging.documents import Followed, Generation
from loader.staging.interval_starts import ENDLESS
from loader.staging.schemas import Schemas, SchemaStore
from loader.transport.base import NoPlace, ServerCannotTell, Transport
from loader.transport.segments import lags
from loader.transport.server.connection import connected


def check_continuity(settings: SourceSettings, generation: Generation, checkpoint: Checkpoint) -> None:
    """Check that the log continues from a checkpoint of the generation: same server, same log, same transactions.

    Raises:
        AnotherServer: a server with GTIDs may be followed; see `follow_server`.
        LogRenamed: the same, if `can_follow`.
        GapError: the log does not continue, and why.
        LogLags: the server's log continues, but the copy that is read here ends before the checkpoint.
    """
    position, transport = checkpoint.position, generation_transport(settings, generation).open()
    with connected(settings.server) as connection:
        continuity.check_identity(connection, generation.identity)
        begins = _check_log(settings, transport, connection, position)
        continuity.check_executed(connection, position, checkpoint.gtids, same_server=True)
        before = read_checkpoint(transport, begins, transport.size(begins.file)).gtids if begins else ""
        continuity.check_not_purged(connection, checkpoint.gtids, archived=before)
    if settings.transport.kind == "file" and (size := transport.size(position.file)) < position.logpos:
        raise lags(position.file, size, position.logpos)
    if difference := find_log_difference(transport, checkpoint):
        raise continuity.log_replaced_error(position, difference)


def can_follow(generation: Generation, reason: GapError) -> bool:
    """Return whether GTIDs can tell where the log continues. Those of a MariaDB log with another name begin at 1."""
    return not (isinstance(reason, continuity.LogRenamed) and generation.identity.kind == "mariadb")


def generation_transport(settings: SourceSettings, generation: Generation) -> TransportSettings:
    """Return the transport of the log of a generation."""
    return settings.transport.model_copy(update={"identity": generation.identity})


def _check_log(
    settings: SourceSettings, transport: Transport, connection: Connection[Any], position: Position
) -> Position | None:
    """Check that the server's log contains a position, or that the archive contains what was purged after it.

    Returns:
        The begin of the server's log if the archive is needed.
    """
    try:
        continuity.check_log_holds(connection, position)
    except continuity.LogPurged as purged:
        if not settings.transport.archive or purged.begins is None:
            raise
        transport.segments(Interval(position, purged.begins))
        return purged.begins
    return None


def follow_server(settings: SourceSettings, chain: PlanChain, old: Generation) -> Generation:
    """Create the generation that continues after everything staged of `old`, on the server that the source has now.

    Raises:
        GapError: see `_generation_after`.
    """
    return chain.begin(_generation_after(settings, chain, old))


def _generation_after(settings: SourceSettings, chain: PlanChain, old: Generation, accepted: str = "") -> Generation:
    """Return the generation that continues after everything staged of `old`, on the server that the source has now.

    `accepted`: errant transactions that are skipped.

    Raises:
        AnotherServer: without GTIDs on both servers, only an operator can know the position. The same if transactions
            without a GTID come before the first one that was not read.
        Errant: the new server has transactions of its own before transactions that were read.
        ServerRestored: the new server lacks transactions that were read.
        LogPurged: the new server has purged transactions that were not read.
    """
    known = chain.newest_checkpoint(old)
    with connected(settings.server) as connection:
        executed = continuity.executed_gtids(connection)
        if not known.gtids or not executed:
            why = "the log that was read or the log of this server has no GTIDs"
            raise continuity.unfollowed_error(settings.name, known.position, why)
        known = replace(known, gtids=str(union_gtids(known.gtids, parse_gtid_set(accepted)))) if accepted else known
        continuity.check_executed(connection, known.position, known.gtids)
        continuity.check_not_purged(connection, known.gtids)
        end, server_id = server_facts.log_end(connection), server_facts.read_identity(connection).server_id
    try:
        found = _first_outside(settings, known.gtids)
    except NoPlace as error:
        raise continuity.unfollowed_error(settings.name, known.position, error.what) from error
    except ServerCannotTell as error:
        by_hand = "loader follow --at FILE:POS"
        hint = f"if you know that nothing is missing: {by_hand}; or {LOAD_ALL_AGAIN}"
        raise continuity.purged_unread_error(error.why or error.what, hint) from error
    start = found or end
    if why := _explain_unknown_start(settings, known.gtids, start):
        raise continuity.unfollowed_error(settings.name, known.position, why)
    _check_errant(settings, old, known, (start, end), accepted, server_id)
    return _generation_at(settings, chain, old, known, start, accepted)


def check_start(settings: SourceSettings, gtids: str, start: Position) -> None:
    """Check that the log has no transactions without a GTID before the first one outside a GTID set of a user.

    Raises:
        UsageError: it has some, so the set does not tell where to start.
        LoaderError: from transport or codec.
    """
    if why := _explain_unknown_start(settings, gtids, start):
        raise UsageError(
            "the log has transactions without a GTID after those of the GTID set",
            why=why,
            hint="give a position instead of the set",
            position=start,
        )


def _explain_unknown_start(settings: SourceSettings, gtids: str, start: Position) -> str:
    if isinstance(parse_gtid_set(gtids), MariadbGtidSet):
        return ""
    place = find_anonymous_before(settings.transport.open(), start)
    return f"before {start}, a transaction in {place} has no GTID, so it may be unread" if place else ""


def follow_accepting(settings: SourceSettings, gtids: str) -> Generation:
    """Create a generation on the server that the source has now, and skip errant transactions of this server.

    Raises:
        UsageError: the text is no GTID set, or has transactions that the server lacks or that are not errant. Or the
            server is read already.
        GapError: as `follow_server`.
    """
    chain = chain_of(settings)
    old = chain.require_generation()
    accepted = str(parse_gtid_set(gtids))
    with connected(settings.server) as connection:
        if server_facts.read_identity(connection).same_server(old.identity):
            raise UsageError("the source is already read from this server", hint="loader run", source=settings.name)
        if absent := missing_gtids(accepted, continuity.executed_gtids(connection)):
            raise UsageError(
                f"transactions {absent} are not on this server",
                hint="SELECT @@global.gtid_executed (MariaDB: @@global.gtid_binlog_pos) lists its transactions",
                source=settings.name,
            )
    try:
        _generation_after(settings, chain, old)
        errant = ""
    except continuity.Errant as error:
        errant = error.gtids
    if others := missing_gtids(accepted, errant):
        raise UsageError(
            f"transactions {others} are not errant",
            why="accepted transactions are skipped, so changes that were not read would be lost",
            hint="loader run; it continues on this server, or names the errant transactions",
            source=settings.name,
        )
    return chain.begin(_generation_after(settings, chain, old, accepted))


def follow_to(settings: SourceSettings, position: Position) -> Generation:
    """Create a generation that continues at a position which an operator vouches for.

    If the newest generation begins there already, it is returned: otherwise a repeated request would read the log after
    that position again.

    Raises:
        BinlogFormatError: the position is no transaction boundary.
        UsageError: according to the GTIDs, transactions before it were not read. Or the log continues where reading
            stopped.
    """
    chain = chain_of(settings)
    old = chain.require_generation()
    if old.follows and old.start == str(position):
        with connected(settings.server) as connection:
            if server_facts.read_identity(connection).same_server(old.identity):
                return old
    known = chain.newest_checkpoint(old)
    if position != known.position:
        _check_left(settings, old, known)
    return chain.begin(_generation_at(settings, chain, old, known, position))


def _check_left(settings: SourceSettings, old: Generation, known: Checkpoint) -> None:
    """Check that the source is not the server that is read already, with the log that was read.

    Raises:
        UsageError: it is. Another position would leave transactions out, or apply some twice.
    """
    try:
        check_continuity(settings, old, known)
    except GapError:
        return
    raise UsageError(
        "the source is read from this server already, and its log goes on where reading stopped",
        why=f"everything before {known.position} was read, and nothing after it",
        hint="loader run; to go over a part of the log again: loader replay",
        source=settings.name,
    )


def _check_errant(
    settings: SourceSettings,
    old: Generation,
    known: Checkpoint,
    log: tuple[Position, Position],
    accepted: str,
    server_id: int,
) -> None:
    """Check that nobody wrote to a MariaDB replica before the transactions that were read. See `_errant` for MySQL.

    Its writes are in domains that were never read; or, without gtid_strict_mode, they have sequence numbers that its
    primary used later. The files before the position are not read, except its own.

    Args:
        settings: of the source.
        old: the generation that was read.
        known: the set that was read, with the accepted transactions.
        log: the position of the first unread transaction, and the end.
        accepted: transactions that an operator allowed to be skipped.
        server_id: of the server that is followed.

    Raises:
        Errant: somebody wrote to it.
    """
    read, skipped = parse_gtid_set(known.gtids), parse_gtid_set(accepted)
    if not isinstance(read, MariadbGtidSet):
        return
    transport, until = settings.transport.open(), log[0]
    own: list[MariadbGtid] = []
    here = log_checkpoint(settings, until)
    if until < log[1] and missing_gtids(known.gtids, here.gtids):
        found = find_interleaving(transport, Interval(*log), here.gtids, known.gtids)
        until, others = found.until, parse_gtid_set(found.others)
        before = {domain: gtid for domain, gtid in read.newest.items() if gtid not in skipped}
        primaries = {old.identity.server_id, *(gtid.server for gtid in before.values())} - {server_id}
        if isinstance(others, MariadbGtidSet):
            own += [gtid for domain, gtid in others.newest.items() if domain not in before and gtid not in read]
        own = [gtid for gtid in own if gtid.server not in primaries]
    first = replace(log[0], logpos=FIRST)
    repeated = find_repeated(transport, Interval(first, until)) if first < until else ()
    own += [gtid for gtid in repeated if gtid in read and gtid.server != read.newest[gtid.domain].server]
    if errant := str(mariadb_set(gtid for gtid in own if gtid not in skipped)):
        raise continuity.errant_error(settings.name, errant)


def log_checkpoint(settings: SourceSettings, position: Position) -> Checkpoint:
    """Return the state of the source's log at a position. Its set has everything that is not in the log after it.

    Raises:
        BinlogFormatError: the position is no transaction boundary, or the file is damaged.
        LoaderError: from transport or codec.
    """
    with connected(settings.server) as connection:
        purged = continuity.purged_gtids(connection)
    transport = settings.transport.open()
    here = read_checkpoint(transport, position, transport.size(position.file))
    return replace(here, gtids=str(union_gtids(here.gtids, parse_gtid_set(purged)))) if purged else here


def _first_outside(settings: SourceSettings, gtids: str) -> Position | None:
    # Not at the top: the import loads the kernel of the dump, and most plans do not need it.
    from loader.transport.gtid_search import first_outside

    return first_outside(settings.server, parse_gtid_set(gtids))


def _generation_at(
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
        end, executed = server_facts.log_end(connection), continuity.executed_gtids(connection)
    here = log_checkpoint(settings, position)
    if (
        identity.kind == "mariadb"
        and identity.same_server(old.identity)
        and position.basename != known.position.basename
    ):
        known = replace(known, gtids="")  # the GTIDs of a log with another name begin again at 1
    if unread := missing_gtids(here.gtids, known.gtids) if known.gtids else "":
        raise UsageError(
            "the position is after transactions that were not read yet",
            why=f"unread transactions: {unread}",
            hint=f"give an earlier position; or {LOAD_ALL_AGAIN}",
            position=position,
        )
    # A server that lacks the set cannot be checked against it later, so only the position counts.
    read = known.gtids if known.gtids and not missing_gtids(known.gtids, executed) else here.gtids
    until = ""
    if position < end:
        until = known_until(settings, Interval(position, end), here.gtids, read, identity.uuid)
    # The shift comes last: another run can still plan log of the old generation, and seqnos must rise.
    return Generation(
        source=old.source,
        name=chain.name_after(old),
        identity=identity,
        start=str(position),
        shift=chain.newest_seqno(old) // SEQNO_UNIT + 1 - position.lognum,
        gtids=read,
        mark=here.mark,
        schemas=_definitions_after(chain, old, known),
        follows=Followed(name=old.name, stop_seqno=known.position.seqno(old.shift)),
        accepted=accepted,
        known_until=until,
    )


def _definitions_after(chain: PlanChain, old: Generation, known: Checkpoint) -> str:
    """Return the digest of the document of tables where a generation was left, with the definitions that were given.

    A definition given for a later position of the old log has no position in the new one. So its table is unknown.
    """
    store, stop = SchemaStore(chain.store, chain.source), known.position.seqno(old.shift)
    keys = store.given_keys(old.name, stop, ENDLESS)
    if not keys:
        return known.schemas
    before = store.get(known.schemas)
    history = before.history(stop, str(known.position))
    for given in map(store.given, keys):
        why = f"its columns were given from {given.at} of the log of the previous server on"
        table = given.table.known() if given.seqno == stop else unknown_table(why)
        history.set_table(given.seqno, given.at, given.table.name, table)
    return store.put(Schemas.of(history.tables(), history.charsets, folds=history.folds))


def set_until(settings: SourceSettings, log: Interval, before: str, gtids: str) -> str:
    """Return the position up to which the log after a start position contains transactions of a set that a user gave.

    Raises:
        UsageError: before that position are transactions of a server that the set lacks.
    """
    try:
        return known_until(settings, log, before, gtids)
    except continuity.Errant as error:
        raise UsageError(
            "the GTID set lacks a server whose transactions are in the log before those of the set",
            why=error.why,
            hint="add the transactions of that server to the set, or give a position",
            position=log.start,
        ) from error


def known_until(settings: SourceSettings, log: Interval, before: str, known: str, own: str = "") -> str:
    """Return the position up to which the log after a start position contains known transactions; empty if it has none.

    `own`: the UUID of the server, if it may have been a replica when the known transactions were read.

    Raises:
        Errant: before that position are transactions that only this server has.
    """
    if not missing_gtids(known, before):
        return ""
    found = find_interleaving(settings.transport.open(), log, before, known)
    read, others = parse_gtid_set(known), parse_gtid_set(found.others)
    if errant := _errant(others, read, own):
        raise continuity.errant_error(settings.name, str(MysqlGtidSet(errant)))
    return str(found.until)


def _errant(others: GtidSet, read: GtidSet, own: str) -> dict[str, Ranges]:
    """Return the transactions that only this server has: of a server that was never read, or its own after those read.

    Others were logged in another order than on the server that was read. For MariaDB see `_check_errant`.
    """
    if not isinstance(others, MysqlGtidSet) or not isinstance(read, MysqlGtidSet):
        return {}
    return {
        source: ranges
        for source, ranges in others.ranges.items()
        if source not in read.ranges or (source.partition(":")[0] == own and ranges[-1][1] > read.ranges[source][-1][1])
    }
