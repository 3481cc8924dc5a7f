"""Check by the global variables of a server that its log can be followed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from loader.doctor.finding import Check, Finding, error, ok, warning
from loader.model.identity import Identity
from loader.source.retention import PurgeRules

Variables = Mapping[str, str]

_DAY = 86400
_WANTED = {
    "binlog_format": ("ROW", "changes are logged as statements and not as rows"),
    "binlog_row_image": ("FULL", "rows are logged without some of their columns"),
}


def checks_of(variables: Variables, identity: Identity) -> list[Check]:
    """Return the checks of this module."""
    return [
        ("log_bin", lambda: log_bin(variables)),
        *((name, partial(wanted, variables, name)) for name in _WANTED),
        ("binlog_row_metadata", lambda: metadata(variables)),
        ("binlog_checksum", lambda: checksum(variables)),
        ("expiry", lambda: expiry(variables)),
        ("gtid", lambda: gtid(variables, identity)),
        ("identity", lambda: server_identity(identity)),
    ]


def log_bin(variables: Variables) -> Finding:
    """Check that the server writes a binary log, as files of events."""
    if variables.get("log_bin") != "ON":
        return error(
            "log_bin", "the server writes no binary log", "set log_bin in the server's configuration and restart it"
        )
    if engine := variables.get("binlog_storage_engine"):
        cure = "remove binlog_storage_engine from the server's configuration, restart it, and load the tables again"
        return error("log_bin", f"the server keeps its log inside {engine}, not in files of events", cure)
    return ok("log_bin", f"ON, {variables.get('log_bin_basename', 'by its default name')}")


def wanted(variables: Variables, name: str) -> Finding:
    """Check that a variable has the value that whole rows in the log need."""
    value, otherwise = _WANTED[name]
    found = variables.get(name, "missing")
    if found.upper() == value:
        return ok(name, value)
    cure = (
        f"SET GLOBAL {name} = {value}, and in its configuration; open sessions keep the old value until they reconnect"
    )
    return error(name, f"{found}: {otherwise}", cure)


def metadata(variables: Variables) -> Finding:
    """Check that the log has the names of columns."""
    found = variables.get("binlog_row_metadata", "missing")
    if found.upper() == "FULL":
        return ok("binlog_row_metadata", "FULL")
    what = f"{found}: the log has no column names, so the loader follows the columns by DDL statements; FULL is safer"
    return warning("binlog_row_metadata", what, "SET GLOBAL binlog_row_metadata = FULL, and in its configuration")


def checksum(variables: Variables) -> Finding:
    """Check that damage of the log can be detected."""
    found = variables.get("binlog_checksum", "NONE")
    if found != "NONE":
        return ok("binlog_checksum", found)
    return warning(
        "binlog_checksum", "NONE: damage of the log cannot be detected", "SET GLOBAL binlog_checksum = CRC32"
    )


def expiry(variables: Variables) -> Finding:
    """Check how long the server keeps its log; see also the runway."""
    rules = PurgeRules.of(variables)
    kept = [f"{rules.expire_seconds / _DAY:g} days"] if rules.expire_seconds else []
    kept += [f"{rules.total_bytes:,} bytes in all"] if rules.total_bytes else []
    waits = f", and longer until {rules.replicas} replicas are connected" if kept and rules.replicas else ""
    what = f"log files are kept for {' or '.join(kept)}{waits}" if kept else "log files are kept forever"
    if 0 < rules.expire_seconds < _DAY:
        return warning("expiry", what, "SET GLOBAL binlog_expire_logs_seconds to some days, and in its configuration")
    return ok("expiry", what)


def gtid(variables: Variables, identity: Identity) -> Finding:
    """Check that GTIDs name positions across servers."""
    if identity.kind == "mariadb":
        return ok("gtid", f"domain {variables.get('gtid_domain_id', '0')}, server {identity.server_id}")
    mode = variables.get("gtid_mode", "OFF")
    if mode == "ON":
        return ok("gtid", "gtid_mode ON")
    return warning(
        "gtid",
        f"gtid_mode {mode}: another server cannot take over, and large log files are read from their start",
        "SET GLOBAL gtid_mode in four steps up to ON (MySQL manual: Changing GTID Mode Online)",
    )


def server_identity(identity: Identity) -> Finding:
    """Check that the server sends its log to replicas."""
    name = identity.uuid or f"server id {identity.server_id}"
    if identity.server_id == 0:
        return error(
            "identity",
            "server_id 0: the server sends its log to no replica",
            "SET GLOBAL server_id = 1, or another number",
        )
    return ok("identity", name)
