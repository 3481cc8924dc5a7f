"""Whether a server's log still is the one that was read: each way in which it is not has an error of its own."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.errors import LOAD_ALL_AGAIN, GapError
from loader.model.gtid import MariadbGtidSet, lacking, mariadb_set, parse_gtid_set
from loader.model.identity import Identity
from loader.model.position import Position
from loader.source.server_facts import query, read_identity
from loader.transport.server.connection import log_sizes


class AnotherServer(GapError):
    """A position means nothing on this server."""


class LogRenamed(GapError):
    """The server's log files have another base name."""


class LogReset(GapError):
    """The numbering of the server's log began again."""


class LogPurged(GapError):
    """The server has deleted log files that are still needed. `begins`: where its log begins now, if that was asked."""

    begins: Position | None = None


class LogShortened(GapError):
    """The server's log lost its end."""


class LogReplaced(GapError):
    """A log file of that name has another content."""


class Errant(GapError):
    """The server has transactions of its own before some that were read from another one."""


class ServerRestored(GapError):
    """The server lacks transactions that were read from it."""


def check_identity(connection: Connection[Any], expected: Identity) -> None:
    """Raise AnotherServer when this is not the server that the chain was read from."""
    found = read_identity(connection)
    if not found.same_server(expected):
        raise AnotherServer(
            "this is another server than the one that was read so far: positions mean nothing on it",
            why=f"expected {expected.uuid or expected.server_id}, found {found.uuid or found.server_id}",
            hint=f"point the source at the old server; or, from this one, {LOAD_ALL_AGAIN}",
        )


def check_log_holds(connection: Connection[Any], position: Position) -> None:
    """Raise LogRenamed, LogReset, LogPurged or LogShortened when the log does not hold the position."""
    sizes = log_sizes(connection)
    newest = Position.at(*list(sizes.items())[-1])
    # A log that got another name in the same index has the old files before it.
    oldest = next(one for file in sizes if (one := Position.at(file, 4)).basename == newest.basename)
    if newest.basename != position.basename:
        raise LogRenamed(
            f"the server's log is called {newest.basename} now",
            why="log_bin or the host's name was changed, and numbering began again",
            hint=f"give it its old name, or {LOAD_ALL_AGAIN}",
            position=position,
        )
    if position.file in sizes:
        if sizes[position.file] < position.logpos:
            raise LogShortened(
                "the log file of the last applied position is shorter than it was",
                why=f"it has {sizes[position.file]} bytes: the log was reset or restored, or lost its end in a crash",
                hint=LOAD_ALL_AGAIN,
                position=position,
            )
        return
    if newest.lognum < position.lognum:
        raise LogReset(
            "the log ends before the last applied position",
            why=f"it ends at {newest}: it was reset, or the server was restored",
            hint=LOAD_ALL_AGAIN,
            position=position,
        )
    purged = LogPurged(
        "the log file of the last applied position is gone from the server",
        why=f"its log begins with {oldest.file}: everything in [{position}, {oldest}) was purged",
        hint="keep logs longer (binlog_expire_logs_seconds); give the source an archive that has it (log_archive),"
        f" or {LOAD_ALL_AGAIN}",
        position=position,
    )
    purged.begins = oldest
    raise purged


def check_executed(connection: Connection[Any], position: Position, gtids: str, *, same_server: bool = False) -> None:
    """Raise ServerRestored when the server lacks transactions of the set.

    The same MariaDB server can forget a domain (FLUSH BINARY LOGS DELETE_DOMAIN_ID): then the mark of the position
    alone tells whether its log is the one that was read.
    """
    executed = executed_gtids(connection) if gtids else ""
    lost = lacking(gtids, executed) if gtids else ""
    missing, known = parse_gtid_set(lost), parse_gtid_set(executed)
    if same_server and isinstance(missing, MariadbGtidSet) and isinstance(known, MariadbGtidSet):
        lost = str(mariadb_set(gtid for domain, gtid in missing.newest.items() if domain in known.newest))
    if lost:
        raise ServerRestored(
            "the server lacks transactions that were read from it",
            why=f"they are {lost}: it was restored from a backup, or its log was begun anew",
            hint=LOAD_ALL_AGAIN,
            position=position,
        )


def executed_gtids(connection: Connection[Any]) -> str:
    """All GTIDs of the server's own log and of before it."""
    mariadb = read_identity(connection).kind == "mariadb"
    return str(query(connection, f"SELECT @@global.{'gtid_binlog_pos' if mariadb else 'gtid_executed'}")[0][0])


def check_not_purged(connection: Connection[Any], gtids: str) -> None:
    """Raise LogPurged when the server has transactions that are neither in its log nor in the set."""
    if not gtids or read_identity(connection).kind == "mariadb":
        return  # it says so itself, when asked for what comes after the set
    purged = str(query(connection, "SELECT @@global.gtid_purged")[0][0])
    if unread := lacking(purged, gtids):
        raise purged_unread_error(f"they are {unread}")


def purged_unread_error(why: str) -> LogPurged:
    """The error of a server that cannot give all transactions that were not read yet."""
    return LogPurged(
        "the server no longer has transactions in its log that were not read yet", why=why, hint=LOAD_ALL_AGAIN
    )


def log_replaced_error(position: Position, difference: str) -> LogReplaced:
    """The error of a log file that only has its name in common with the one that was read."""
    return LogReplaced(
        "the log file of that name is not the one that was read",
        why=f"{difference}: the log was reset, or the server was restored, and has written on since",
        hint=LOAD_ALL_AGAIN,
        position=position,
    )


def errant_error(source: str, gtids: str) -> Errant:
    """The error of a new server with transactions that the old one never had, and that later ones may overwrite."""
    return Errant(
        "the new server has transactions of its own before some that were read from the old one",
        why=f"they are {gtids}: applied now, they would come after later changes of the same rows",
        hint=f"loader follow --source {source} --accept {gtids}; it passes over them,"
        " so load the tables again that they changed",
        source=source,
    )


def unfollowed_error(source: str, position: Position, why: str) -> AnotherServer:
    """The error of another server whose log has no GTIDs to find the place by."""
    return AnotherServer(
        "this is another server than the one that was read so far, and without GTIDs the place in its log is not known",
        why=why,
        hint="point the source at the old server; or, if you know the position on this one up to which everything was"
        f" read: loader follow --source {source} --at FILE:POS; or {LOAD_ALL_AGAIN}",
        position=position,
    )
