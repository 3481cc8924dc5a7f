"""Waiting until a read sees everything that the log holds up to a position.

A server writes a transaction to its log first and makes it visible to others afterwards; with semi-synchronous
replication (AFTER_SYNC) seconds can lie between. A load that read too early would miss rows that no later log brings.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from pymysql.connections import Connection

from loader.errors import RetryableError
from loader.model.gtid import MysqlGtid, parse_owned_gtids
from loader.model.position import Position
from loader.source.server_facts import query, read_identity

_PAUSE_SECONDS = 0.02
_LONGEST_SECONDS = 600
_SETTLE_SECONDS = 30
_LOG = logging.getLogger(__name__)


def wait_until_visible(connection: Connection[Any], position: Position) -> None:
    """Return once reads that start from now on see every transaction up to `position`, which the log has reached.

    MariaDB tells the position of a snapshot. MySQL tells which GTIDs are owned: a transaction owns its GTID from
    before it is in the log until it is visible. With any `gtid_mode` but ON there can be transactions without a GTID.
    MySQL counts those that are under way (status `Ongoing_anonymous_transaction_count`): a commit from before it is in
    the log until it is visible, one that a replica applies from its beginning on (seen on MySQL 9.7 in all modes). Once
    the count is 0, all are visible. A busy replica may always have some: there, commits that wait for a replica are
    waited for, and any other one is assumed to become visible within half a minute after its write to the log.

    Raises:
        RetryableError: not within ten minutes.
    """
    began = time.monotonic()
    visible = _question(connection, position)
    while not visible():
        if time.monotonic() - began > _LONGEST_SECONDS:
            raise RetryableError(
                "transactions in the log are not visible yet",
                why="a commit waits for a replica, or a session holds a GTID without using it",
                hint="look at SHOW PROCESSLIST and @@global.gtid_owned, then run again",
                position=position,
            )
        time.sleep(_PAUSE_SECONDS)


def _question(connection: Connection[Any], position: Position) -> Callable[[], bool]:
    """How to ask this server whether all is visible."""
    if read_identity(connection).kind == "mariadb":
        return lambda: _snapshot_position(connection) >= position
    owned = _owned(connection)
    if query(connection, "SELECT @@global.gtid_mode")[0][0] == "ON":
        return lambda: not owned & _owned(connection)
    settled = time.monotonic() + _SETTLE_SECONDS
    return lambda: not owned & _owned(connection) and _none_anonymous(connection, settled)


def _none_anonymous(connection: Connection[Any], settled: float) -> bool:
    """Whether no transaction without a GTID is under way, or all are visible since the time is over."""
    counts = query(connection, "SHOW GLOBAL STATUS LIKE 'Ongoing_anonymous_transaction_count'")
    if any(int(count) == 0 for _, count in counts):
        return True
    if time.monotonic() < settled or _waiting(connection):
        return False
    _LOG.warning(
        "there were transactions without a GTID all the time; after %s seconds those in the log are taken for visible",
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
    """Commits that wait for a replica."""
    return sum(int(count) for _, count in query(connection, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync%wait_sessions'"))
