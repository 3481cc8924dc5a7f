"""Foreign keys by which InnoDB changes rows of a child table without logging it.

Source: MySQL manual, "Replication and Foreign Keys". From MySQL 9.6 on, the server changes these rows itself and logs
them, unless it was started with `innodb_native_foreign_keys`. MariaDB never logs them (seen on 10.11 and 11.8). A row
event that a server without this feature logged, and that a replica applies, is an exception: it lacks the flag
USE_SQL_FOREIGN_KEY_F, and InnoDB changes the child rows of the replica without logging them (seen on 9.7).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pymysql.connections import Connection

from loader.errors import UnsupportedError
from loader.model.table import TableName
from loader.resources import sql
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


def find_parents(connection: Connection[Any], captured: Callable[[TableName], bool]) -> dict[str, tuple[str, ...]]:
    """Return the tables whose changes change captured tables by foreign keys: see `UnloggedChanges.parents`.

    A foreign key counts if the user may see the table that has it. That is so for captured tables.
    """
    names = ([str(name) for name in row] for row in query(connection, sql("source/cascades")))
    return cascade_parents(((TableName(a, b), TableName(c, d)) for a, b, c, d in names), captured)


def cascade_parents(
    keys: Iterable[tuple[TableName, TableName]], captured: Callable[[TableName], bool]
) -> dict[str, tuple[str, ...]]:
    """Return by parent the captured tables that its changes reach, also through other tables.

    `keys`: child and parent of each foreign key that cascades.
    """
    children: dict[TableName, set[TableName]] = {}
    for child, parent in keys:
        children.setdefault(parent, set()).add(child)
    reached = {parent: _reach(parent, children) for parent in children}
    found = {str(parent): tuple(sorted(map(str, filter(captured, reached[parent])))) for parent in sorted(reached)}
    return {parent: names for parent, names in found.items() if names}


def _reach(parent: TableName, children: dict[TableName, set[TableName]]) -> set[TableName]:
    found, new = set[TableName](), {parent}
    while new := {child for one in new for child in children.get(one, ())} - found:
        found |= new
    return found


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
