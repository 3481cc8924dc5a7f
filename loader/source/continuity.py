"""Whether a server's log still is the log that was read. Each difference has a separate error class."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.errors import LOAD_ALL_AGAIN, GapError
from loader.model.gtid import MariadbGtidSet, mariadb_set, missing_gtids, parse_gtid_set
from loader.model.identity import Identity
from loader.model.position import Position
from loader.source.server_facts import query, read_identity
from loader.transport.server.connection import log_sizes


class AnotherServer(GapError):
    """The source is another server than before, on which known positions are meaningless."""


class LogRenamed(GapError):
    """The base name of the server's log files has changed. MariaDB's GTIDs then begin again at 1."""


class LogReset(GapError):
    """The numbering of the server's log files started over."""


class LogPurged(GapError):
    """The server has deleted log files that are still needed. `begins`: where its log begins now, if known."""

    begins: Position | None = None


class LogShortened(GapError):
    """The end of the server's log is missing."""


class LogReplaced(GapError):
    """A log file has the same name but other content."""


class Errant(GapError):
    """The new server has transactions of its own, `gtids`, before transactions that were read from the old server."""

    gtids: str = ""


class ServerRestored(GapError):
    """The server lacks transactions that were read from it."""


def check_identity(connection: Connection[Any], expected: Identity) -> None:
    """Check that this is the server that the chain was read from.

    Raises:
        AnotherServer: it is another server.
    """
    found = read_identity(connection)
    if not found.same_server(expected):
        raise another_server_error(expected, found)


def another_server_error(expected: Identity, found: Identity) -> AnotherServer:
    """Return the error for a server that differs from the one that the chain was read from."""
    return AnotherServer(
        "the source is another server than before, so known positions are meaningless",
        why=f"expected {expected.uuid or expected.server_id}, found {found.uuid or found.server_id}",
        hint=f"point the source at the old server; or {LOAD_ALL_AGAIN}",
    )


def check_log_holds(connection: Connection[Any], position: Position) -> None:
    """Check that the server's log contains a position.

    Raises:
        LogRenamed, LogReset, LogPurged, LogShortened: it does not.
    """
    sizes = log_sizes(connection)
    newest = Position.at(*list(sizes.items())[-1])
    # If log_bin was renamed, the same index still lists the old files first.
    oldest = next(one for file in sizes if (one := Position.at(file, 4)).basename == newest.basename)
    if newest.basename != position.basename:
        raise LogRenamed(
            f"the server's log is now named {newest.basename}",
            why="log_bin or the host name was changed, and the numbering started over",
            hint=f"if everything in the old log was staged: loader follow --at {oldest}; if nothing was written to the"
            f" new log: restore the old name (log_bin); or {LOAD_ALL_AGAIN}",
            position=position,
        )
    if position.file in sizes:
        if sizes[position.file] < position.logpos:
            raise LogShortened(
                "the log file in which reading continues is shorter than before",
                why=f"it has {sizes[position.file]} bytes: the log was reset or restored, or a crash cut its end",
                hint=LOAD_ALL_AGAIN,
                position=position,
            )
        return
    if newest.lognum < position.lognum:
        raise LogReset(
            "the log ends before the position where reading continues",
            why=f"the log ends at {newest}: it was reset, or the server was restored",
            hint=LOAD_ALL_AGAIN,
            position=position,
        )
    purged = LogPurged(
        "the server purged a log file that is still needed",
        why=f"its log now begins with {oldest.file}: everything in [{position}, {oldest}) was purged",
        hint="set log_archive of the source to an archive that has the file, or"
        f" {LOAD_ALL_AGAIN}; keep logs longer (binlog_expire_logs_seconds)",
        position=position,
    )
    purged.begins = oldest
    raise purged


def check_executed(connection: Connection[Any], position: Position, gtids: str, *, same_server: bool = False) -> None:
    """Check that the server has all transactions of the set.

    The same MariaDB server can forget a domain (FLUSH BINARY LOGS DELETE_DOMAIN_ID). Then only the mark of the position
    tells whether its log is the log that was read.

    Raises:
        ServerRestored: the server lacks some of them.
    """
    executed = executed_gtids(connection) if gtids else ""
    lost = missing_gtids(gtids, executed) if gtids else ""
    missing, known = parse_gtid_set(lost), parse_gtid_set(executed)
    if same_server and isinstance(missing, MariadbGtidSet) and isinstance(known, MariadbGtidSet):
        lost = str(mariadb_set(gtid for domain, gtid in missing.newest.items() if domain in known.newest))
    if lost:
        raise ServerRestored(
            "the server lacks transactions that were read from it",
            why=f"transactions {lost}: the server was restored from a backup, or its log was reset",
            hint=LOAD_ALL_AGAIN,
            position=position,
        )


def executed_gtids(connection: Connection[Any]) -> str:
    """Return all GTIDs of the server's log and of everything before it."""
    mariadb = read_identity(connection).kind == "mariadb"
    return str(query(connection, f"SELECT @@global.{'gtid_binlog_pos' if mariadb else 'gtid_executed'}")[0][0])


def check_not_purged(connection: Connection[Any], gtids: str, archived: str = "") -> None:
    """Check that every transaction of the server is in its log or in the set.

    Args:
        connection: to the server.
        gtids: of the transactions that were read.
        archived: the GTIDs that were logged before the oldest file of the server, if an archive has those files.

    Raises:
        LogPurged: some transactions are in neither, for example because a MySQL replica did not log them.
    """
    if not gtids:
        return
    if unread := missing_gtids(missing_gtids(purged_gtids(connection), archived), gtids):
        raise purged_unread_error(f"transactions {unread}")


def purged_gtids(connection: Connection[Any]) -> str:
    """Return the GTIDs of MySQL that are in no log file; empty for MariaDB, which refuses a set that lacks some.

    PREVIOUS_GTIDS of a file omits GTIDs that only the table `mysql.gtid_executed` has. A server that was made from a
    backup has them.
    """
    mariadb = read_identity(connection).kind == "mariadb"
    return "" if mariadb else "".join(str(query(connection, "SELECT @@global.gtid_purged")[0][0]).split())


def purged_unread_error(why: str, hint: str = LOAD_ALL_AGAIN) -> LogPurged:
    """Return the error of a server that has purged transactions before they were read."""
    return LogPurged("the server purged transactions from its log before they were read", why=why, hint=hint)


def log_replaced_error(position: Position, difference: str) -> LogReplaced:
    """Return the error of a log file that has the name of a read file, but other content."""
    return LogReplaced(
        "the log file was replaced by another one of the same name",
        why=f"{difference}: the log was reset or the server restored, and it has written more log since",
        hint=LOAD_ALL_AGAIN,
        position=position,
    )


def errant_error(source: str, gtids: str) -> Errant:
    """Return the error of a new server with transactions that the old server never had."""
    error = Errant(
        "the new server has errant transactions before transactions that were read from the old server",
        why=f"transactions {gtids}: applied now, they could overwrite later changes of the same rows",
        hint=f"loader follow --accept {gtids}; it skips them, so load the tables that they changed again",
        source=source,
    )
    error.gtids = gtids
    return error


def unfollowed_error(source: str, position: Position, why: str) -> AnotherServer:
    """Return the error of another server whose log has no GTIDs to find the position by."""
    return AnotherServer(
        "the source is another server than before, and without GTIDs the position in its log is unknown",
        why=why,
        hint="point the source at the old server; or, if you know up to which position of this server everything was"
        f" read: loader follow --at FILE:POS; or {LOAD_ALL_AGAIN}",
        source=source,
        position=position,
    )
