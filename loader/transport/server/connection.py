"""Connections to a server, and the translation of their errors: wrong credentials, no answer, a refusal."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR, ER

from loader.binlog.crypto.encryption import MYSQL_HEADER
from loader.errors import LoaderError, RetryableError, SourceUnavailable, UsageError
from loader.transport.server.address import ServerAddress
from loader.transport.server.authentication import GuardedConnection
from loader.transport.server.driver import check_driver
from loader.transport.server.session import first_statement, set_variables

_DENIED = {ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.SPECIFIC_ACCESS_DENIED_ERROR, 1142, 1698, 3118}
_UNREACHABLE = {
    CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, CR.CR_SERVER_HANDSHAKE_ERR,
    ER.CON_COUNT_ERROR, ER.SERVER_SHUTDOWN, ER.QUERY_INTERRUPTED, 1927, 3169,
}  # fmt: skip

_CHANGED = {ER.TABLE_DEF_CHANGED, ER.NO_SUCH_TABLE, ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK}

_TIMEOUT_SECONDS = 10
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 90_000}
"""A lost peer is noticed after 90 seconds, however long a statement may run (tcp(7))."""


class AccessDenied(LoaderError):
    """The server refused the user, or a statement of the user."""


@contextmanager
def connected(address: ServerAddress, read_timeout: float | None = None) -> Iterator[Connection[Any]]:
    """Open a connection in utf8mb4 with the variables of loader.transport.server.session, and close it at the end.

    The connection is lost if the server is silent for `read_timeout` seconds (default: those of the address), or if its
    machine does not answer for 90 seconds.

    Raises:
        AccessDenied, SourceUnavailable, UsageError, RetryableError: also for statements inside the block.
    """
    with server_errors(address):
        connection = GuardedConnection(
            address,
            _tls(address),
            defer_connect=True,
            charset="utf8mb4",
            autocommit=True,
            local_infile=False,
            read_timeout=read_timeout or address.read_timeout_seconds,
            init_command=first_statement(),
        )
        try:
            connection.connect(_socket(address))
            check_driver(connection)
            set_variables(connection)
            yield connection
        finally:
            if connection.open:
                connection.close()


def _socket(address: ServerAddress) -> socket.socket:
    """Return a connected socket that notices a lost peer."""
    found = socket.create_connection((address.host, address.port), _TIMEOUT_SECONDS)
    found.settimeout(None)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # not available on every system
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return found


def log_sizes(connection: Connection[Any]) -> dict[str, int]:
    """Return the log files of the server and their bytes of log, as positions count them, oldest first.

    SHOW BINARY LOGS shows the size of the file. A file that MySQL encrypted (third column) has an additional header.
    """
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        rows = [(str(name), int(size), rest[:1]) for name, size, *rest in cursor.fetchall()]
    return {name: size - MYSQL_HEADER if encrypted == ["Yes"] else size for name, size, encrypted in rows}


def _tls(address: ServerAddress) -> ssl.SSLContext | None:
    """Return a context that verifies, unlike the TLS options of PyMySQL; None without TLS."""
    if not address.encrypted:
        return None
    try:
        context = ssl.create_default_context(cafile=address.tls_ca or None)
    except OSError as error:
        hint = "set tls_ca to the certificate of the server's authority (MySQL: ca.pem in its data folder)"
        raise UsageError("the TLS authority cannot be read", why=str(error), hint=hint, key=address.tls_ca) from error
    try:
        if address.tls_cert:
            context.load_cert_chain(address.tls_cert, address.tls_key or None, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise UsageError(
            "the TLS certificate cannot be used",
            why=str(error),
            hint="set tls_cert and tls_key to PEM files that belong together",
            key=address.tls_cert,
        ) from error
    return context


def _no_passphrase() -> str:
    """Refuse an encrypted key, for which OpenSSL would ask on the terminal."""
    raise ValueError("its key is encrypted: use an unencrypted key that only the user of the loader can read")


@contextmanager
def server_errors(address: ServerAddress) -> Iterator[None]:
    """Translate errors of the driver into errors of the loader."""
    try:
        yield
    except pymysql.err.MySQLError as error:
        raise _translated(error, address) from error
    except OSError as error:
        raise _unavailable(address, str(error)) from error
    except Exception as error:
        if not _raised_in_driver(error):
            raise
        raise LoaderError(
            "the server sent data that the driver cannot read",
            why=f"{type(error).__name__}: {error}",
            hint="check that a MySQL or MariaDB server has this address, and that no proxy changes the data",
            source=address,
        ) from error


def _raised_in_driver(error: Exception) -> bool:
    """Return whether the driver failed on an invalid packet: it checks few of them."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] == "pymysql"


def _translated(error: pymysql.err.MySQLError, address: ServerAddress) -> LoaderError:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    why = str(error.args[-1]) if error.args else type(error).__name__
    if code in _DENIED:
        return AccessDenied(
            "the server refused the user",
            why=why,
            hint="check user, password and grants: loader doctor; see sql/source/grants.sql; an account with REQUIRE"
            " X509, ISSUER or SUBJECT needs its certificate (tls_cert)",
            source=address,
        )
    if code in _UNREACHABLE or code == 0:
        return _unavailable(address, why)
    if code in _CHANGED:
        return RetryableError(
            "a table was altered, dropped or locked while it was read",
            why=f"{code}: {why}",
            hint="run again",
            source=address,
        )
    return LoaderError(
        "the server refused a statement",
        why=f"{code}: {why}",
        hint="loader doctor checks the settings and grants of the server",
        source=address,
    )


def _unavailable(address: ServerAddress, why: str) -> SourceUnavailable:
    return SourceUnavailable(
        "the server does not answer", why=why, hint="start it or fix the network, then run again", source=address
    )
