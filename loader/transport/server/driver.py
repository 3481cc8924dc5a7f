"""The private parts of PyMySQL that the loader uses.

Reading blocks directly from the stream of the driver is 50 times cheaper than reading its packets. No other module uses
a private name of the driver. Every connection is checked for these names.
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
    """Check that a connection, or its class, has the private names that the loader uses.

    Raises:
        UsageError: a name is missing.
    """
    if missing := [name for name in names if not hasattr(connection, name)]:
        raise UsageError(
            f"PyMySQL {VERSION_STRING} is not supported",
            why=f"it has no {', '.join(missing)}",
            hint="install the version in constraints.txt: pip install -c constraints.txt pymysql",
        )


def check_authentication() -> None:
    """Check that the driver has the methods that loader.transport.server.authentication overrides.

    Raises:
        UsageError: a method is missing.
    """
    check_driver(Connection, ("_request_authentication", "_force_close"))


def send_command(connection: Connection[Any], command: int, payload: bytes | str) -> None:
    """Send a command of the protocol."""
    connection._execute_command(command, payload)


def read_packet(connection: Connection[Any], kind: type[MysqlPacket] = MysqlPacket) -> Any:
    """Read a packet of the reply; an error packet is raised as MySQLError."""
    return connection._read_packet(kind)


def reply_stream(connection: Connection[Any]) -> BufferedReader:
    """Return the buffered stream from the server, with the read timeout of the connection."""
    socket_of(connection).settimeout(connection._read_timeout)  # the driver sets it before each read
    return cast("BufferedReader", connection._rfile)


def socket_of(connection: Connection[Any]) -> socket.socket:
    """Return the socket of an open connection."""
    return cast("socket.socket", connection._sock)
