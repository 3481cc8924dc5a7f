"""A consistent snapshot whose exact position in the log is known, without any lock."""

from __future__ import annotations

import time
from typing import Any

from pymysql.connections import Connection

from loader.errors import RetryableError
from loader.initial_load.commit_visibility import wait_until_visible
from loader.model.position import Position
from loader.source.server_facts import log_end, query

_LONGEST_SECONDS = 60
_OPEN = "START TRANSACTION WITH CONSISTENT SNAPSHOT"


def open_snapshot(connection: Connection[Any]) -> Position:
    """Begin a transaction that sees all up to the position and nothing after it; the session has repeatable reads.

    MariaDB and Percona Server tell the position (status `binlog_snapshot_file`). MySQL does not: there a snapshot is
    opened, again and again, until the end of the log before it, all of which is visible then, is still the end
    behind it. A commit is written to the log before it is visible, so that the snapshot has nothing beyond that.

    Raises:
        RetryableError: the log grew during every try.
    """
    began = time.monotonic()
    while time.monotonic() - began < _LONGEST_SECONDS:
        before = log_end(connection)
        wait_until_visible(connection, before)
        query(connection, _OPEN)
        status = query(connection, "SHOW STATUS LIKE 'binlog_snapshot%'")
        told = {str(name).lower(): str(value) for name, value in status}
        if told.get("binlog_snapshot_file"):
            return Position.at(told["binlog_snapshot_file"], int(told["binlog_snapshot_position"]))
        if log_end(connection) == before:
            return before
        query(connection, "ROLLBACK")
    raise RetryableError(
        "no moment without a commit was found, which the snapshot of a table without a key needs",
        why=f"the log grew during each try in {_LONGEST_SECONDS} seconds; MySQL does not tell a snapshot's position",
        hint="run again when the server is less busy, or give the table a primary key",
    )
