"""What one asks a server before reading its log: who it is, how it logs, and where its log ends."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.errors import LoaderError, UsageError
from loader.model.identity import Identity
from loader.model.position import Position
from loader.transport.file import refuse_pages

_NEW_STATUS = (8, 2)  # MySQL from here on says SHOW BINARY LOG STATUS


class WrongSettings(LoaderError):
    """The server logs in a way that the loader cannot read whole rows from."""


def query(connection: Connection[Any], statement: str) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def read_identity(connection: Connection[Any]) -> Identity:
    """The server's identity."""
    version, server_id = query(connection, "SELECT VERSION(), @@server_id")[0]
    if "mariadb" in str(version).lower():
        return Identity(kind="mariadb", version=str(version), server_id=int(server_id))
    uuid = query(connection, "SELECT @@server_uuid")[0][0]
    return Identity(kind="mysql", version=str(version), server_id=int(server_id), uuid=str(uuid))


def log_end(connection: Connection[Any]) -> Position:
    """The end of the server's log now: a transaction boundary, since groups are written to it whole.

    Raises:
        WrongSettings: the server keeps no log.
        UnsupportedError: it keeps it inside InnoDB.
    """
    rows = _log_status(connection)
    if not rows:
        raise WrongSettings("the server keeps no binary log", hint="set log_bin in its configuration and restart it")
    refuse_pages(str(rows[0][0]))
    return Position.at(str(rows[0][0]), int(rows[0][1]))


def log_filters(connection: Connection[Any]) -> tuple[str, str]:
    """The schemas that alone are logged (binlog_do_db), and those that are not (binlog_ignore_db), with commas."""
    rows = _log_status(connection)
    return (str(rows[0][2]), str(rows[0][3])) if rows else ("", "")


def _log_status(connection: Connection[Any]) -> list[tuple[Any, ...]]:
    identity = read_identity(connection)
    numbers = tuple(int(part) for part in identity.version.split("-")[0].split(".")[:2])
    new = identity.kind == "mysql" and numbers >= _NEW_STATUS
    return query(connection, "SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS")


_WANTED = {"binlog_format": "ROW", "binlog_row_image": "FULL"}


def logs_names(connection: Connection[Any]) -> bool:
    """Whether the server logs the names of columns now."""
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE 'binlog\\_row\\_metadata'")
    return bool(rows) and str(rows[0][1]).upper() == "FULL"


def folds_names(connection: Connection[Any]) -> bool:
    """Return whether the server does not tell names of tables apart by case. Its log has statements as typed."""
    return int(query(connection, "SELECT @@lower_case_table_names")[0][0]) != 0


def check_settings(connection: Connection[Any]) -> None:
    """Raise WrongSettings unless the server logs whole rows."""
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE 'binlog\\_%'")
    found = {str(name): str(value).upper() for name, value in rows}
    for name, wanted in _WANTED.items():
        if found.get(name, wanted) != wanted:
            raise WrongSettings(
                f"the server has {name}={found[name]}",
                why="rows cannot be read whole from its log",
                hint=f"SET GLOBAL {name}={wanted}; open sessions keep the old value until they reconnect",
            )


def check_version(identity: Identity) -> None:
    """Raise UsageError for servers that are too old to log column names."""
    numbers = tuple(int(part) for part in identity.version.split("-")[0].split(".")[:2])
    oldest = (8, 0) if identity.kind == "mysql" else (10, 5)
    if numbers < oldest:
        raise UsageError(
            f"{identity.kind} {identity.version} does not log column names",
            hint=f"this version of the loader reads {identity.kind} from {'.'.join(map(str, oldest))} on",
        )
