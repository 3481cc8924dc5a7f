"""A server that says nothing, and a peer that is gone."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from infra.servers.process import wait_until
from loader.errors import SourceUnavailable
from loader.source.server_facts import query
from loader.transport.server.connection import connected
from tests.conftest import StartServer
from tests.support.replicas import address_of

pytestmark = pytest.mark.integration


def states(pid: int | None) -> list[str]:
    """The states of the threads of a process (proc(5)); one that is stopped may still answer until they are `T`."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks]


def test_a_stopped_server_is_given_up_after_the_time_of_the_configuration(fresh_server: StartServer) -> None:
    server = fresh_server("mariadb")
    assert server.pid is not None
    address = address_of(server).model_copy(update={"read_timeout_seconds": 1})
    began = time.monotonic()
    try:
        with pytest.raises(SourceUnavailable) as caught, connected(address) as connection:
            os.kill(server.pid, signal.SIGSTOP)  # its kernel still answers for it
            assert wait_until(lambda: set(states(server.pid)) == {"T"}, 10), "a thread of the server still runs"
            query(connection, "SELECT 1")
        with pytest.raises(SourceUnavailable), connected(address):
            pass
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert caught.value.retryable
    assert time.monotonic() - began < 30


def test_the_kernel_asks_whether_the_peer_is_there(fresh_server: StartServer) -> None:
    with connected(address_of(fresh_server("mariadb"))) as connection:
        found = connection._sock
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        assert [found.getsockopt(socket.IPPROTO_TCP, one) for one in options] == [30, 10, 6, 90_000]
