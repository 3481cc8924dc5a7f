"""Waiting before a chunk while the server is busy, or while it is a replica that is behind its source."""

from __future__ import annotations

import logging
import time
from typing import Any

from pymysql.connections import Connection

from loader.initial_load.server.read_limits import ReadLimits, ServerLoad, reason_to_wait
from loader.source.server_facts import query, query_named, read_identity

_PAUSE_SECONDS = 1.0
_REPORT_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


def wait_for_server(connection: Connection[Any], limits: ReadLimits) -> None:
    """Return once a further chunk may be read. The reason to wait is logged, at first and then every minute.

    Raises:
        MySQLError: from the driver; on MariaDB also if the user may not see the replication.
    """
    reported = -_REPORT_SECONDS
    while reason := reason_to_wait(limits, read_load(connection, limits)):
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
    mariadb = read_identity(connection).kind == "mariadb"
    channels = query_named(connection, "SHOW ALL SLAVES STATUS" if mariadb else "SHOW REPLICA STATUS")
    lags = [channel["seconds_behind_master" if mariadb else "seconds_behind_source"] for channel in channels]
    return None if None in lags else max(map(int, lags), default=0)
