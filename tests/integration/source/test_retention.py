"""How long real servers keep a log file, and that they purge it when its runway has ended, not before."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from infra.servers import NEW_MARIADB, Server
from infra.servers.process import wait_until
from loader.source.retention import Runway, read_runway, read_start_time
from loader.source.server_facts import query
from loader.transport.base import Transport
from loader.transport.file import FileTransport
from loader.transport.network import NetworkTransport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected, log_sizes
from tests.conftest import StartServer

pytestmark = pytest.mark.integration


def address(server: Server) -> ServerAddress:
    return ServerAddress(host=server.host, port=server.port, user=server.user)


def execute(server: Server, *statements: str) -> None:
    with connected(address(server)) as connection:
        for statement in statements:
            query(connection, statement)


def files(server: Server) -> list[str]:
    with connected(address(server)) as connection:
        return list(log_sizes(connection))


def asked(server: Server, file: str, transport: Transport | None = None) -> Runway:
    with connected(address(server)) as connection:
        return read_runway(connection, transport or NetworkTransport(address(server)), file)


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_by_age(kind: str, fresh_server: StartServer) -> None:
    server = fresh_server(kind)
    execute(server, "FLUSH BINARY LOGS")
    first, second = files(server)[-2:]
    at = read_start_time(NetworkTransport(address(server)), second)
    written: Path = server.log_dir / first
    assert abs(written.stat().st_mtime - at) <= 2, "the last write of a file and the first event of the next"

    execute(server, "SET GLOBAL binlog_expire_logs_seconds = 7200")
    os.utime(written, (0, at))  # what the server itself goes by
    before = time.time()
    for transport in (NetworkTransport(address(server)), FileTransport(str(server.log_dir))):
        found = asked(server, first, transport)
        assert found.rule == "age"
        assert 2 - (time.time() - at + 1) / 3600 <= found.hours <= 2 - (before - at - 1) / 3600
    assert asked(server, second) == Runway(file=second, hours=2, rule="age"), "the current file"
    execute(server, "FLUSH BINARY LOGS")
    assert first in files(server)

    execute(server, "SET GLOBAL binlog_expire_logs_seconds = 0")
    assert asked(server, first) == Runway(file=first, hours=None, rule="none")
    execute(server, "SET GLOBAL binlog_expire_logs_seconds = 1")
    hours: list[float | None] = []

    def purged() -> bool:
        hours.append(asked(server, first).hours)
        execute(server, "FLUSH BINARY LOGS")
        return first not in files(server)

    assert wait_until(purged, 30)
    assert hours[-1] == 0
    assert asked(server, first) == Runway(file=first, hours=0, rule="gone")


def test_by_size(fresh_server: StartServer) -> None:
    options = {
        "max_binlog_total_size": "2000000",
        "slave_connections_needed_for_purge": "0",
        "max_binlog_size": "500000",
    }
    server = fresh_server("mariadb", options, NEW_MARIADB)
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (v LONGTEXT)")
    first = files(server)[0]
    from_disk = FileTransport(str(server.log_dir))  # a dump would keep the server from purging what it reads
    while (room := _room(server)) > 0:
        found = asked(server, first, from_disk)
        assert (found.rule, found.hours > 0) == ("size", True), room
        execute(server, "INSERT INTO d.t VALUES (REPEAT('x', 200000))")
        if first not in files(server):
            break

    def purged() -> bool:
        execute(server, "FLUSH BINARY LOGS")  # MariaDB keeps what a recovery after a crash needs
        return first not in files(server)

    assert wait_until(purged, 30)
    assert asked(server, first, from_disk).rule == "gone"


def _room(server: Server) -> int:
    """Bytes that the logs may grow before the server purges one: it does so at any write, or later."""
    with connected(address(server)) as connection:
        return 2_000_000 - sum(log_sizes(connection).values())
