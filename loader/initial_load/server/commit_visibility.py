"""Waiting until a read sees everything that the log contains up to a position.

A server first writes a transaction to its log, then makes it visible to other sessions. With semi-synchronous
replication (AFTER_SYNC) seconds can pass between the two. A load that reads too early would miss rows that no later
part of the log contains.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pymysql.connections import Connection

from loader.errors import RetryableError
from loader.model.gtid import MysqlGtid, parse_owned_gtids
from loader.model.position import Position
from loader.source.server_facts import query, read_identity

_PAUSE_SECONDS = 0.02
_LONGEST_SECONDS = 600
_SETTLE_SECONDS = 30
_XA_SECONDS = 10
_LOG = logging.getLogger(__name__)


def wait_until_visible(connection: Connection[Any], position: Position) -> None:
    """Return once new reads see every transaction up to `position`, which the log has reached.

    MariaDB tells the position of a consistent snapshot. XA transactions are an exception: see `_ended_xa`.

    MySQL tells which GTIDs are owned: a transaction owns its GTID from before it is in the log until it is visible.
    Unless `gtid_mode` is ON, some transactions may have no GTID. MySQL counts those in progress (status
    `Ongoing_anonymous_transaction_count`): a commit from before it is in the log until it is visible, and a transaction
    applied by a replica from its start (seen on MySQL 9.7 in all modes). When the count is 0, all are visible. On a
    busy replica it may never be 0. There, commits that wait for a replica are waited for. Any other commit is assumed
    to be visible half a minute after its write to the log.

    Raises:
        RetryableError: not all transactions are visible after ten minutes.
    """
    began = time.monotonic()
    visible = _question(connection, position)
    while not visible():
        if time.monotonic() - began > _LONGEST_SECONDS:
            raise RetryableError(
                "transactions in the log are not visible yet",
                why="a commit waits for a replica, or a session holds a GTID without using it",
                hint="check SHOW PROCESSLIST and SELECT @@global.gtid_owned, then run again",
                position=position,
            )
        time.sleep(_PAUSE_SECONDS)


def wait_for_xa(connection: Connection[Any]) -> None:
    """Return once new reads see every XA transaction that MariaDB has begun to commit: see `_ended_xa`."""
    if read_identity(connection).kind == "mariadb":
        ended = _ended_xa(connection)
        while not ended():
            time.sleep(_PAUSE_SECONDS)


def _question(connection: Connection[Any], position: Position) -> Callable[[], bool]:
    """Return the function that asks this server whether all transactions are visible."""
    if read_identity(connection).kind == "mariadb":
        ended = _ended_xa(connection)
        return lambda: _snapshot_position(connection) >= position and ended()
    owned = _owned(connection)
    if query(connection, "SELECT @@global.gtid_mode")[0][0] == "ON":
        return lambda: not owned & _owned(connection)
    settled = time.monotonic() + _SETTLE_SECONDS
    return lambda: not owned & _owned(connection) and _none_anonymous(connection, settled)


def _ended_xa(connection: Connection[Any]) -> Callable[[], bool]:
    """Return the function that asks MariaDB whether every XA transaction that is committed in the log is visible.

    MariaDB writes XA COMMIT to the log and moves the position of snapshots, and only then commits in the engine (seen
    on 10.11). Between the two steps, XA RECOVER lists the transaction in the same way as a prepared one. So the
    function asks about all transactions in that list. Both steps follow each other at once, also with semi-synchronous
    replication. So a transaction that is still in the list after ten seconds counts as only prepared. This holds until
    the server begins another XA COMMIT, so loads of many tables wait only once.
    """
    commits, began = count_xa_commits(connection), time.monotonic()
    left = _perhaps_committing(connection)

    def ended() -> bool:
        left.intersection_update(_prepared_xa(connection))  # an application can use the id of an ended one again
        if left and time.monotonic() >= began + _XA_SECONDS:
            _LOG.warning("%d XA transactions stay prepared; they count as not committed", len(left))
            _LINGERING[_address(connection)] = _Lingering(frozenset(left), commits, began)
            return True
        return not left

    return ended


class _Lingering(NamedTuple):
    """XA transactions that were only prepared.

    Attributes:
        transactions: as XA RECOVER shows them.
        commits: how many XA COMMIT statements the server had begun before.
        since: when that was, by the monotonic clock.
    """

    transactions: frozenset[tuple[Any, ...]]
    commits: int
    since: float


_LINGERING: dict[tuple[str, int], _Lingering] = {}
"""What this process has found, by host and port."""


def _address(connection: Connection[Any]) -> tuple[str, int]:
    return str(connection.host), int(connection.port)


def _only_prepared(connection: Connection[Any]) -> frozenset[tuple[Any, ...]]:
    """Return the transactions that are certainly only prepared: since they were found, no XA COMMIT has begun."""
    found = _LINGERING.get(_address(connection))
    if found is None or found.commits != count_xa_commits(connection):
        return frozenset()
    ((_, uptime),) = query(connection, "SHOW GLOBAL STATUS LIKE 'Uptime'")
    was_restarted = int(uptime) < time.monotonic() - found.since  # its counts then began again
    return frozenset() if was_restarted else found.transactions


def _perhaps_committing(connection: Connection[Any]) -> set[tuple[Any, ...]]:
    return _prepared_xa(connection) - _only_prepared(connection)


def _prepared_xa(connection: Connection[Any]) -> set[tuple[Any, ...]]:
    return set(query(connection, "XA RECOVER"))


def count_ended_xa_commits(connection: Connection[Any]) -> int | None:
    """Return `count_xa_commits` of MariaDB if all these transactions are visible; None if some may not be."""
    commits = count_xa_commits(connection)
    return None if _perhaps_committing(connection) else commits


def count_xa_commits(connection: Connection[Any]) -> int:
    """Return how many XA COMMIT statements the server has begun since its start."""
    return int(query(connection, "SHOW GLOBAL STATUS LIKE 'Com\\_xa\\_commit'")[0][1])


def _none_anonymous(connection: Connection[Any], settled: float) -> bool:
    """Return whether no transaction without a GTID is in progress. After `settled`, all of them count as visible."""
    counts = query(connection, "SHOW GLOBAL STATUS LIKE 'Ongoing_anonymous_transaction_count'")
    if any(int(count) == 0 for _, count in counts):
        return True
    if time.monotonic() < settled or _waiting(connection):
        return False
    _LOG.warning(
        "transactions without a GTID stay in progress; after %s seconds those in the log count as visible",
        _SETTLE_SECONDS,
    )
    return True


def _snapshot_position(connection: Connection[Any]) -> Position:
    query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    try:
        rows = query(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'")
    finally:
        query(connection, "ROLLBACK")
    found = {str(name).lower(): str(value) for name, value in rows}
    return Position.at(found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))


def _owned(connection: Connection[Any]) -> set[MysqlGtid]:
    return set(parse_owned_gtids(str(query(connection, "SELECT @@global.gtid_owned")[0][0])))


def _waiting(connection: Connection[Any]) -> int:
    """Return the number of commits that wait for a replica."""
    return sum(int(count) for _, count in query(connection, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync%wait_sessions'"))
