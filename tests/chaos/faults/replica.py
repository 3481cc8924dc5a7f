"""A replica that takes over, and the server before it that becomes its replica."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import DictCursor

from infra.servers import Options, Server, start_server
from infra.servers.process import wait_until


def start_replica(primary: Server, folder: Path, options: Options) -> Server:
    """Start a second server and make it a replica, by GTIDs from the first transaction on."""
    replica = start_server(primary.kind, folder, {**options, "server_id": "2"})
    _ask(replica, "FLUSH BINARY LOGS")  # so that equal transactions have different positions
    follow(primary, replica)
    return replica


def follow(primary: Server, replica: Server) -> None:
    """Make a server the replica of another one."""
    if primary.kind == "mysql":
        _ask(
            replica,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{primary.host}', SOURCE_PORT={primary.port},"
            f" SOURCE_USER='{primary.user}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
            "START REPLICA",
        )
    else:
        _ask(
            replica,
            f"CHANGE MASTER TO MASTER_HOST='{primary.host}', MASTER_PORT={primary.port}, MASTER_USER='{primary.user}',"
            " MASTER_USE_GTID=slave_pos",
            "START SLAVE",
        )


def why_stopped(replica: Server) -> str:
    """Return the error with which a replica stopped by itself, or an empty text.

    Statements that are logged as such, and cascades of foreign keys, can change other rows on a replica. It stops at a
    later change that does not fit its rows.
    """
    connection = pymysql.connect(host=replica.host, port=replica.port, user=replica.user, cursorclass=DictCursor)
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW REPLICA STATUS")
        (status,) = cursor.fetchall()
    return str(status["Last_SQL_Error"])


def take_over_dead(replica: Server) -> None:
    """Promote the replica of a server that is dead, with the transactions that have come so far."""
    if replica.kind == "mysql":
        _ask(replica, "STOP REPLICA IO_THREAD")
        status = "SELECT received_transaction_set FROM performance_schema.replication_connection_status"
        _ask(replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET(({status}), 60)")
        _ask(replica, "STOP REPLICA", "RESET REPLICA ALL")
    else:
        _ask(replica, "STOP SLAVE IO_THREAD")
        wait_until(lambda: _has_applied(replica), 60)
        _ask(replica, "STOP SLAVE", "RESET SLAVE ALL")


def _has_applied(replica: Server) -> bool:
    states = _ask(replica, "SELECT state FROM information_schema.processlist WHERE command LIKE 'Slave%'")
    return any("has read all relay log" in f"{state}" for (state,) in states)


def take_over(primary: Server, replica: Server) -> bool:
    """Promote the replica once it has everything, and make the old server its replica; False if it fell behind."""
    if primary.kind == "mysql":
        executed = _ask(primary, "SELECT @@global.gtid_executed")[0][0]
        behind = _ask(replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)")[0][0]
        _ask(replica, "STOP REPLICA", "RESET REPLICA ALL")
    else:
        position = _ask(primary, "SELECT @@global.gtid_binlog_pos")[0][0]
        behind = _ask(replica, f"SELECT MASTER_GTID_WAIT('{position}', 60)")[0][0]
        _ask(replica, "STOP SLAVE", "RESET SLAVE ALL")
        _ask(primary, f"SET GLOBAL gtid_slave_pos = '{position}'")
    primary.kill()
    primary.start()
    follow(replica, primary)
    return behind == 0


def _ask(server: Server, *statements: str) -> list[tuple[Any, ...]]:
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user, autocommit=True)
    with connection, connection.cursor() as cursor:
        for one in statements:
            cursor.execute(one)
        return list(cursor.fetchall())
