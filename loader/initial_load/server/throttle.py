"""Waiting before a chunk: for a place among the readers of the server, and while it is busy or a lagging replica.

The places are named locks of the server (MySQL manual, "Locking Functions"), so all loaders share them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from pymysql.connections import Connection

from loader.initial_load.server.read_limits import ReadLimits, ServerLoad, reason_to_wait
from loader.source.server_facts import query, read_channels

_PAUSE_SECONDS = 1.0
_REPORT_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


def wait_for_server(connection: Connection[Any], limits: ReadLimits) -> None:
    """Return once a further chunk may be read. The reason to wait is logged, at first and then every minute.

    Raises:
        MySQLError: from the driver; on MariaDB also if the user may not see the replication.
    """
    _wait_while(lambda: reason_to_wait(limits, read_load(connection, limits)))


def take_reader_place(connection: Connection[Any], limits: ReadLimits) -> None:
    """Return once fewer than `limits.readers` other connections have a place. Closing the connection gives it back.

    Raises:
        MySQLError: from the driver.
    """
    if limits.readers:
        _wait_while(lambda: "" if _has_place(connection, limits.readers) else _full(connection, limits.readers))


def _has_place(connection: Connection[Any], places: int) -> bool:
    return any(query(connection, f"SELECT GET_LOCK('{name}', 0)")[0][0] == 1 for name in _names(places))


def _names(places: int) -> list[str]:
    return [f"binlog-loader reader {place}" for place in range(1, places + 1)]


def _full(connection: Connection[Any], places: int) -> str:
    """Return why there is no place. A reader whose machine is gone can keep its place for hours."""
    asked = ", ".join(f"IS_USED_LOCK('{name}')" for name in _names(places))
    readers = [str(reader) for reader in query(connection, f"SELECT {asked}")[0] if reader is not None]
    return (
        f"{places} readers of this loader or of others read the server, in its connections {', '.join(readers)}"
        "; if the machine of a reader is gone: KILL CONNECTION"
    )


def _wait_while(find_reason: Callable[[], str]) -> None:
    """Wait until there is no reason to. The reason is logged, at first and then every minute."""
    reported = -_REPORT_SECONDS
    while reason := find_reason():
        if time.monotonic() - reported >= _REPORT_SECONDS:
            _LOG.warning("waiting before the next chunk: %s", reason)
            reported = time.monotonic()
        time.sleep(_PAUSE_SECONDS)


def read_load(connection: Connection[Any], limits: ReadLimits) -> ServerLoad:
    """Return how busy the server is. Only what has a limit is asked."""
    return ServerLoad(
        threads_running=_threads_running(connection) if limits.max_threads_running else 0,
        lag_seconds=_lag_seconds(connection) if limits.max_replica_lag_seconds else 0,
    )


def _threads_running(connection: Connection[Any]) -> int:
    return int(query(connection, "SHOW GLOBAL STATUS LIKE 'Threads\\_running'")[0][1])


def _lag_seconds(connection: Connection[Any]) -> int | None:
    """Return the largest lag of all channels of replication; 0 for a server that is no replica."""
    behind = ("seconds_behind_source", "seconds_behind_master")  # MySQL, MariaDB
    lags = [channel[name] for channel in read_channels(connection) for name in behind if name in channel]
    return None if None in lags else max(map(int, lags), default=0)
