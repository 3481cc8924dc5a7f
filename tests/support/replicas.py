"""A second server that has what the first one has, by GTIDs, and a log of its own."""

from __future__ import annotations

from typing import Any

from infra.servers import Options, Server
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected


def run(server: Server, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements as root, each its own transaction; the rows of the last one."""
    with connected(address_of(server)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def address_of(server: Server) -> ServerAddress:
    return ServerAddress(host=server.host, port=server.port, user=server.user)


def options_of_replica(kind: str) -> Options:
    """What a server needs to be a replica that can be promoted."""
    return {"server_id": "2"} | ({} if kind == "mysql" else {"log_slave_updates": "ON"})


def replicating(old: Server, new: Server) -> None:
    """Make the new server a replica whose log has other offsets, and wait until it has all."""
    for _ in range(3):
        run(new, "FLUSH BINARY LOGS")
    if old.kind == "mysql":
        run(
            new,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={old.port}, SOURCE_USER='{old.user}',"
            " SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
            "START REPLICA",
        )
    else:
        run(
            new,
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={old.port}, MASTER_USER='{old.user}',"
            " MASTER_USE_GTID=slave_pos",
            "START SLAVE",
        )
    caught_up(old, new)


def caught_up(old: Server, new: Server) -> None:
    """Wait until the new server has all that the old one has now."""
    if old.kind == "mysql":
        executed = run(old, "SELECT @@global.gtid_executed")[0][0]
        assert run(new, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)") == [(0,)]
    else:
        position = run(old, "SELECT @@global.gtid_binlog_pos")[0][0]
        assert run(new, f"SELECT MASTER_GTID_WAIT('{position}', 60)") == [(0,)]


def stop_replica(server: Server) -> None:
    run(server, "STOP REPLICA" if server.kind == "mysql" else "STOP SLAVE")
