"""The parts of PyMySQL that the loader uses though they are not public.

Blocks read straight from the driver's stream are 50 times cheaper than its packets. Nothing else in the loader uses a
private name of the driver, and every connection is checked for these.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from io import BufferedReader
from typing import Any, cast

from pymysql import VERSION_STRING
from pymysql.connections import Connection, MysqlPacket

from loader.errors import UsageError

_PRIVATE = ("_execute_command", "_read_packet", "_rfile", "_sock", "_read_timeout")


def check_driver(connection: Connection[Any] | type[Connection[Any]], names: Sequence[str] = _PRIVATE) -> None:
    """Raise UsageError if a connection, or its class, lacks a private name that the loader uses."""
    if missing := [name for name in names if not hasattr(connection, name)]:
        raise UsageError(
            f"PyMySQL {VERSION_STRING} is not supported",
            why=f"it has no {', '.join(missing)}",
            hint="install the version in constraints.txt: pip install -c constraints.txt pymysql",
        )


def check_authentication() -> None:
    """Raise UsageError if the driver lacks what loader.transport.server.authentication stands in front of."""
    check_driver(Connection, ("_request_authentication",))


def send_command(connection: Connection[Any], command: int, payload: bytes | str) -> None:
    """Send a command of the protocol."""
    connection._execute_command(command, payload)


def read_packet(connection: Connection[Any], kind: type[MysqlPacket] = MysqlPacket) -> Any:
    """Read a packet of the reply; an error packet is raised as MySQLError."""
    return connection._read_packet(kind)


def reply_stream(connection: Connection[Any]) -> BufferedReader:
    """Return the buffered stream of what the server sends, with the read time-out of the connection set."""
    socket_of(connection).settimeout(connection._read_timeout)  # the driver sets it before it reads itself
    return cast("BufferedReader", connection._rfile)


def socket_of(connection: Connection[Any]) -> socket.socket:
    """Return the socket of an open connection."""
    return cast("socket.socket", connection._sock)
