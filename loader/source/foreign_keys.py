"""Foreign keys by which InnoDB changes rows of a child table without logging it.

Source: MySQL manual, "Replication and Foreign Keys". From MySQL 9.6 on, the server changes these rows itself and logs
them, unless it was started with `innodb_native_foreign_keys`. MariaDB never logs them (seen on 10.11 and 11.8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from loader.errors import UnsupportedError
from loader.model.table import TableName
from loader.source.digest import show_create
from loader.source.server_facts import query

_CASCADES = re.compile(
    rb"^ *CONSTRAINT .* FOREIGN KEY .* ON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)", re.MULTILINE
)


def logs_cascades(connection: Connection[Any]) -> bool:
    """Return whether the server logs the rows that foreign keys change."""
    return ("innodb_native_foreign_keys", "OFF") in query(
        connection, "SHOW GLOBAL VARIABLES LIKE 'innodb\\_native\\_foreign\\_keys'"
    )


def has_cascades(connection: Connection[Any], table: TableName) -> bool:
    """Return whether changes of a parent change rows of the table.

    Raises:
        MySQLError: from the driver; also if there is no such table.
    """
    return bool(_CASCADES.search(show_create(connection, table)))


def find_unlogged_tables(connection: Connection[Any], tables: Sequence[TableName]) -> list[TableName]:
    """Return the tables whose rows foreign keys change without a log entry."""
    return [] if logs_cascades(connection) else [name for name in tables if has_cascades(connection, name)]


def check_cascades(connection: Connection[Any], table: TableName) -> None:
    """Check that the log has every change of the table's rows.

    Raises:
        UnsupportedError: foreign keys change its rows without logging it.
    """
    if not logs_cascades(connection) and has_cascades(connection, table):
        raise UnsupportedError(
            "the log does not have all changes of the table",
            why="its foreign keys CASCADE or SET NULL, and this server does not log the rows that they change",
            hint=f"{table.exclusion}, or make the foreign keys RESTRICT and load it",
            table=table,
        )
