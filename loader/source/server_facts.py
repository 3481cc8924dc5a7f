"""What the loader asks a server before it reads its log: identity, log settings and the end of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymysql.connections import Connection
from pymysql.constants.ER import SPECIFIC_ACCESS_DENIED_ERROR
from pymysql.err import MySQLError

from loader.errors import LoaderError, UsageError
from loader.model.identity import Identity
from loader.model.position import Position
from loader.resources import sql
from loader.transport.file import refuse_pages

_NEW_STATUS = (8, 2)  # MySQL has SHOW BINARY LOG STATUS from this version on


class WrongSettings(LoaderError):
    """The server's log settings prevent reading whole rows."""


def query(connection: Connection[Any], statement: str) -> list[tuple[Any, ...]]:
    """Return all rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def query_named(connection: Connection[Any], statement: str) -> list[dict[str, Any]]:
    """Return all rows of a statement, each by the names of its columns in lower case."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [str(column[0]).lower() for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def read_channels(connection: Connection[Any]) -> list[dict[str, Any]]:
    """Return the status of each channel (MariaDB: connection) of replication, by the names of its columns.

    Raises:
        MySQLError: from the driver; also if the user may not see them.
    """
    mariadb = read_identity(connection).kind == "mariadb"
    return query_named(connection, "SHOW ALL SLAVES STATUS" if mariadb else "SHOW REPLICA STATUS")


def read_identity(connection: Connection[Any]) -> Identity:
    """Return the identity of the server."""
    version, server_id = query(connection, "SELECT VERSION(), @@server_id")[0]
    if "mariadb" in str(version).lower():
        return Identity(kind="mariadb", version=str(version), server_id=int(server_id))
    uuid = query(connection, "SELECT @@server_uuid")[0][0]
    return Identity(kind="mysql", version=str(version), server_id=int(server_id), uuid=str(uuid))


def log_end(connection: Connection[Any]) -> Position:
    """Return the current end of the server's log. It is a transaction boundary, because groups are written as a whole.

    Raises:
        WrongSettings: the server writes no binary log.
        UnsupportedError: the server writes it inside InnoDB.
    """
    rows = log_status(connection)
    if not rows:
        raise WrongSettings("the server writes no binary log", hint="set log_bin in its configuration and restart it")
    refuse_pages(str(rows[0][0]))
    return Position.at(str(rows[0][0]), int(rows[0][1]))


def log_status(connection: Connection[Any]) -> list[tuple[Any, ...]]:
    """Return a row: file and position of the end of the log, binlog_do_db, binlog_ignore_db. No row without a log."""
    identity = read_identity(connection)
    numbers = tuple(int(part) for part in identity.version.split("-")[0].split(".")[:2])
    new = identity.kind == "mysql" and numbers >= _NEW_STATUS
    return query(connection, "SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS")


_WANTED = {"binlog_format": "ROW", "binlog_row_image": "FULL"}


def logs_names(connection: Connection[Any]) -> bool:
    """Return whether the server currently logs column names."""
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE 'binlog\\_row\\_metadata'")
    return bool(rows) and str(rows[0][1]).upper() == "FULL"


def folds_names(connection: Connection[Any]) -> bool:
    """Return whether the server compares table names without case. Its log has statements as they were typed."""
    return int(query(connection, "SELECT @@lower_case_table_names")[0][0]) != 0


def check_settings(connection: Connection[Any]) -> None:
    """Check that the server logs whole rows, also those of changes that it replicates.

    Raises:
        WrongSettings: it does not.
    """
    rows = query(connection, sql("source/log_variables"))
    found = {str(name).lower(): str(value).upper() for name, value in rows}
    for name, wanted in _WANTED.items():
        if found.get(name, wanted) != wanted:
            raise WrongSettings(
                f"the server has {name}={found[name]}",
                why="its log does not contain whole rows",
                hint=f"SET GLOBAL {name}={wanted}; then reconnect all sessions, which keep the old value",
            )
    check_replication(connection, found)


def check_replication(connection: Connection[Any], variables: Mapping[str, str]) -> None:
    """Check that the server logs the changes that it replicates.

    `variables`: log_replica_updates or log_slave_updates, gtid_slave_pos and wsrep_on.

    Raises:
        WrongSettings: it does not.
    """
    if _hides_replicated_changes(connection, variables):
        raise WrongSettings(
            "the server does not log the changes that it replicates",
            why="log_replica_updates (log_slave_updates) is OFF",
            hint=_hint_for_hidden_changes(variables),
        )


def _hides_replicated_changes(connection: Connection[Any], variables: Mapping[str, str]) -> bool:
    """Return whether the server is a replica or a Galera node whose log lacks the changes that it replicates.

    MariaDB shows the replica status only with another privilege. Without it, a MariaDB that has replicated from another
    MariaDB has a position of replication, and others count the connections of replication that run.

    Args:
        connection: to the server.
        variables: its log_replica_updates or log_slave_updates, gtid_slave_pos and wsrep_on.
    """
    if "ON" in {variables.get("log_replica_updates"), variables.get("log_slave_updates")}:
        return False
    if variables.get("wsrep_on") == "ON":
        return True
    position = variables.get("gtid_slave_pos")
    if position is None:
        return bool(query(connection, "SHOW REPLICA STATUS"))
    if position:
        return True
    try:
        return bool(query(connection, "SHOW ALL SLAVES STATUS"))
    except MySQLError as error:
        if error.args[0] != SPECIFIC_ACCESS_DENIED_ERROR:
            raise
    return bool(query(connection, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")[0][1] != "0")


def _hint_for_hidden_changes(variables: Mapping[str, str]) -> str:
    """Return what to do with a replica whose log lacks the changes that it replicates."""
    cure = "set log_replica_updates (log_slave_updates) and restart it, or read from its source"
    if variables.get("gtid_slave_pos"):
        cure += "; if it is no replica any more: SET GLOBAL gtid_strict_mode = OFF; SET GLOBAL gtid_slave_pos = '';"
        cure += " and the old gtid_strict_mode again"
    return cure


def check_version(identity: Identity) -> None:
    """Check that the server is recent enough to log column names.

    Raises:
        UsageError: it is too old.
    """
    numbers = tuple(int(part) for part in identity.version.split("-")[0].split(".")[:2])
    oldest = (8, 0) if identity.kind == "mysql" else (10, 5)
    if numbers < oldest:
        raise UsageError(
            f"{identity.kind} {identity.version} is too old: it cannot log column names",
            hint=f"this version of the loader reads {identity.kind} from {'.'.join(map(str, oldest))} on",
        )
