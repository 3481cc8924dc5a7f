"""A consistent snapshot of the server at an exact log position, without locks."""

from __future__ import annotations

import time
from typing import Any

from pymysql.connections import Connection

from loader.errors import RetryableError, UnsupportedError
from loader.initial_load.server.commit_visibility import count_ended_xa_commits, count_xa_commits, wait_until_visible
from loader.model.position import Position
from loader.model.table import TableName
from loader.source.schemas import quote_name
from loader.source.server_facts import log_end, query, read_identity

_LONGEST_SECONDS = 60
SNAPSHOT_ENGINE = "InnoDB"
"""The only engine with consistent snapshots."""
_OPEN = "START TRANSACTION WITH CONSISTENT SNAPSHOT"


def open_snapshot(connection: Connection[Any]) -> Position:
    """Begin a transaction that sees everything up to the returned position and nothing after it.

    The session must use REPEATABLE READ. MariaDB and Percona Server tell the position (status `binlog_snapshot_file`).
    It counts if no XA COMMIT was under way: MariaDB's position may include it before its rows are visible.

    MySQL does not tell the position. There, snapshots are opened until the end of the log is the same before and after:
    everything before that end is visible to the snapshot. A commit is in the log before it is visible, so the snapshot
    contains nothing after that end.

    Raises:
        RetryableError: the log grew, or an XA COMMIT was under way, during every attempt.
    """
    began, on_mariadb = time.monotonic(), read_identity(connection).kind == "mariadb"
    while time.monotonic() - began < _LONGEST_SECONDS:
        before = log_end(connection)
        wait_until_visible(connection, before)
        commits = count_ended_xa_commits(connection) if on_mariadb else None
        query(connection, _OPEN)
        status = query(connection, "SHOW STATUS LIKE 'binlog_snapshot%'")
        told = {str(name).lower(): str(value) for name, value in status}
        if told.get("binlog_snapshot_file"):
            if not on_mariadb or count_xa_commits(connection) == commits:
                return Position.at(told["binlog_snapshot_file"], int(told["binlog_snapshot_position"]))
        elif log_end(connection) == before:
            return before
        query(connection, "ROLLBACK")
    raise RetryableError(
        "no consistent snapshot with a known log position could be opened",
        why=f"the log grew, or XA transactions were committed, during each attempt for {_LONGEST_SECONDS} seconds",
        hint="run again when the server is less busy; an initial load needs no snapshot if the table has a primary key",
    )


def read_status(connection: Connection[Any], table: TableName) -> dict[str, Any]:
    """Return the columns of SHOW TABLE STATUS for a table, by lower-case title; empty if there is no such table."""
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW TABLE STATUS FROM {quote_name(table.schema)} WHERE Name = %s", (table.table,))
        titles = [str(field[0]).lower() for field in cursor.description]
        rows = cursor.fetchall()  # MariaDB also finds names that differ by case or accents
    return next((dict(zip(titles, row, strict=True)) for row in rows if row[0] == table.table), {})


def read_engine(connection: Connection[Any], table: TableName) -> str:
    """Return the name of a table's engine; empty if there is no such table."""
    return str(read_status(connection, table).get("engine") or "")


def check_engine(connection: Connection[Any], table: TableName) -> None:
    """Verify that a table without a key can be read as of one position of the log.

    Raises:
        UnsupportedError: its engine has no consistent snapshots.
    """
    engine = read_engine(connection, table)
    if engine != SNAPSHOT_ENGINE:
        raise UnsupportedError(
            f"a table of engine {engine} without a primary key is not supported",
            why="only InnoDB can read it as of one position of the log",
            hint=f"add a primary key, or {table.exclusion}",
            table=table,
        )
