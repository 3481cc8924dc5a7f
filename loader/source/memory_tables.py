"""MEMORY tables of MariaDB: a restart of the server empties them, maybe without a log entry.

MariaDB logs a TRUNCATE where a session first opens the table, but not if that session has `sql_log_bin = 0`, as
`mariadb-upgrade` does. MySQL logs it then as well (seen on MariaDB 10.11 and MySQL 9.7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pymysql.connections import Connection

from loader.model.table import TableName
from loader.resources import sql
from loader.source.server_facts import query, read_identity


def find_memory_tables(connection: Connection[Any], captured: Callable[[TableName], bool]) -> tuple[str, ...]:
    """Return the captured MEMORY tables whose emptying by a restart may not be logged; none on MySQL."""
    if read_identity(connection).kind != "mariadb":
        return ()
    names = (TableName(str(schema), str(table)) for schema, table in query(connection, sql("source/memory_tables")))
    return tuple(map(str, filter(captured, names)))
