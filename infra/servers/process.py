"""Processes and ports, read from /proc, so only on Linux."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import ServerError

HOST = "127.0.0.1"
# Below the range of ports that Linux uses for outgoing connections. So no connection can occupy the port of a stopped
# server before it starts again.
_PORTS = range(21000, 32000)
_PROTOCOL_10 = 0x0A


@dataclass(frozen=True)
class Process:
    """A unique process: a pid can be reused, but not a pid with its start time."""

    pid: int
    started_at: str  # in the kernel's clock ticks

    @property
    def alive(self) -> bool:
        return _started_at(self.pid) == self.started_at


def process(pid: int) -> Process | None:
    """The live process with this pid."""
    started_at = _started_at(pid)
    return Process(pid, started_at) if started_at else None


def _started_at(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # a program name may hold spaces and brackets
    state, start_time = fields[0], fields[19]
    return None if state in "ZX" else start_time  # a zombie has ended, whether or not its parent asked


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until the condition holds, or return False after the time limit."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def free_port() -> int:
    """Return a free port on loopback."""
    for port in random.sample(_PORTS, 200):
        if is_free(port):
            return port
    raise ServerError(f"none of 200 ports tried between {_PORTS.start} and {_PORTS.stop} is free")


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def greets(port: int) -> bool:
    """Return whether a server answers a connection with the handshake packet of the MySQL protocol."""
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            packet = connection.recv(5)
    except OSError:
        return False
    return len(packet) == 5 and packet[4] == _PROTOCOL_10
