"""Checks of a running server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pymysql.connections import Connection

from loader.doctor import grants, statements, tables, variables
from loader.doctor.finding import Check, Finding, error, examine, of_error, ok, warning
from loader.errors import LoaderError
from loader.model.identity import Identity
from loader.model.table import TableName
from loader.source import server_facts
from loader.source.log_filters import read_filters
from loader.source.retention import Runway, read_runway
from loader.source.schemas import find_tables
from loader.source.server_facts import check_version, log_end, query, read_identity
from loader.source.update_triggers import logs_virtual_columns
from loader.staging.documents import TableFilter
from loader.staging.filters import CapturedTables
from loader.transport.base import Transport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected, server_errors

_SKEW_SECONDS = 5
_DAY_HOURS = 24


def server_findings(
    address: ServerAddress,
    wanted: TableFilter,
    log: Callable[[], Transport],
    *,
    needed: Callable[[Identity], str] = lambda _: "",
    min_hours: float = 0,
    archived: bool = False,
    markers: frozenset[TableName] = frozenset(),
) -> list[Finding]:
    """Return all findings about a server.

    Args:
        address: of the server, with the user.
        wanted: the captured tables.
        log: opens the transport of its log files.
        needed: the oldest log file of a server that is not staged; empty for the current one.
        min_hours: shortest runway without a warning.
        archived: whether purged log files are read from an archive.
        markers: tables by which transactions are skipped.
    """
    try:
        with connected(address) as connection:
            identity = read_identity(connection)
            asked = {str(k): str(v) for k, v in query(connection, "SHOW GLOBAL VARIABLES")}
            checks: list[Check] = [
                ("server", lambda: _version(address, identity)),
                *variables.checks_of(asked, identity),
                ("tls", lambda: tls(address, cipher(connection))),
                ("clock", lambda: clock(_now(connection), time.time())),
                ("replica", lambda: replica(connection, asked)),
                ("tables", lambda: examine(_of_tables(address, connection, wanted, markers, asked))),
            ]
            if asked.get("log_bin") == "ON":
                asks = partial(_runway, connection, log, lambda: needed(identity))
                checks.append(("runway", lambda: runway(asks(), min_hours, archived=archived)))
            return examine((name, _translated(address, check)) for name, check in checks)
    except LoaderError as failed:
        return [of_error("server", failed)]


def _translated(
    address: ServerAddress, check: Callable[[], Finding | list[Finding]]
) -> Callable[[], Finding | list[Finding]]:
    """Return the check, with errors of the driver translated to errors of the loader."""

    def run() -> Finding | list[Finding]:
        with server_errors(address):
            return check()

    return run


def _of_tables(
    address: ServerAddress,
    connection: Connection[Any],
    wanted: TableFilter,
    markers: frozenset[TableName],
    asked: Mapping[str, str],
) -> list[Check]:
    captured = find_tables(connection, CapturedTables(wanted))
    logged = [*captured, *sorted(markers)]
    user, granted = grants.read_grants(connection)
    checks: list[Check] = [
        ("grants", lambda: grants.missing(user, granted, captured)),
        ("grants", lambda: grants.excess(user, granted, triggers=logs_virtual_columns(connection))),
        ("tables", lambda: tables.found(captured, wanted)),
        ("keys", lambda: tables.supported(connection, captured)),
        ("tables", lambda: tables.cascades(connection, captured)),
        ("binlog_format", lambda: statements.by_statement(connection, captured, asked)),
        ("markers", lambda: tables.markers(markers, find_tables(connection, markers.__contains__))),
        ("tables", lambda: tables.logged(logged, *read_filters(connection)) if logged else []),
    ]
    return [(name, _translated(address, check)) for name, check in checks]


def _version(address: ServerAddress, identity: Identity) -> Finding:
    check_version(identity)
    return ok("server", f"{identity.kind} {identity.version} at {address}")


def cipher(connection: Connection[Any]) -> str:
    """Return the cipher of the connection; empty if it is not encrypted."""
    return str(query(connection, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1])


def tls(address: ServerAddress, found: str) -> Finding:
    """Check that the connection is encrypted."""
    if found:
        return ok("tls", f"{found}, the server's certificate is verified")
    if address.on_loopback:
        return ok("tls", "none; connections on one machine need none")
    return warning(
        "tls",
        "none: rows are sent over the network in clear text",
        'remove tls = "off", and set tls_ca',
    )


def _now(connection: Connection[Any]) -> float:
    return float(query(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0])


def clock(there: float, here: float) -> Finding:
    """Check that the clocks of the server and of this machine agree."""
    skew = there - here
    if abs(skew) <= _SKEW_SECONDS:
        return ok("clock", f"{abs(skew):.1f} seconds apart")
    word = "ahead of" if skew > 0 else "behind"
    what = f"the server is {abs(skew):,.0f} seconds {word} this machine: times given as positions are wrong by that"
    return warning("clock", what, "synchronise both clocks with NTP")


def replica(connection: Connection[Any], asked: Mapping[str, str]) -> list[Finding]:
    """Check that a replica logs all that it changes."""
    server_facts.check_replication(connection, asked)
    return []


def _runway(connection: Connection[Any], log: Callable[[], Transport], needed: Callable[[], str]) -> Runway:
    return read_runway(connection, log(), needed() or log_end(connection).file)


def runway(found: Runway, min_hours: float, *, archived: bool = False) -> Finding:
    """Check that the server keeps unstaged log long enough. The check of the chain says whether an archive has it."""
    if archived:
        return ok("runway", f"{found}; purged files are read from log_archive")
    cure = "run a delta now, and raise binlog_expire_logs_seconds (MariaDB: or max_binlog_total_size) on the server"
    if found.rule == "gone":
        return error("runway", str(found), "restore the file from an archive, or load the tables again")
    if found.hours is not None and found.hours < min_hours:
        return error("runway", f"{found}, less than min_runway_hours {min_hours:g}", cure)
    if found.hours is not None and found.hours < _DAY_HOURS:
        return warning("runway", str(found), cure)
    return ok("runway", str(found))
