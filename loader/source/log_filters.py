"""Schemas that a server leaves out of its log.

Source: MySQL manual, "How Servers Evaluate Replication Rules": `binlog_do_db` and `binlog_ignore_db` filter rows by the
schema of their table, but statements by the default schema of their session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pymysql.connections import Connection

from loader.model.table import TableName
from loader.source.schemas import find_tables
from loader.source.server_facts import WrongSettings, log_status

FILTER_HINT = (
    "remove binlog_do_db and binlog_ignore_db from its configuration, restart the server, and load the tables again"
)


def read_filters(connection: Connection[Any]) -> tuple[set[str], set[str]]:
    """Return binlog_do_db (the only schemas that are logged, if there are any) and binlog_ignore_db."""
    rows = log_status(connection)
    do, ignore = (str(rows[0][2]), str(rows[0][3])) if rows else ("", "")
    return set(filter(None, do.split(","))), set(filter(None, ignore.split(",")))


def find_unlogged_schemas(tables: Iterable[TableName], do: set[str], ignore: set[str]) -> list[str]:
    """Return the schemas of the tables whose rows are not logged; for `do` and `ignore` see `read_filters`."""
    schemas = dict.fromkeys(name.schema for name in tables)
    return [schema for schema in schemas if (do and schema not in do) or schema in ignore]


def check_filters(connection: Connection[Any], captured: Callable[[TableName], bool]) -> None:
    """Check that the server logs the rows of all captured tables.

    Raises:
        WrongSettings: it does not.
    """
    do, ignore = read_filters(connection)
    if not (do or ignore):
        return
    if unlogged := find_unlogged_schemas(find_tables(connection, captured), do, ignore):
        raise WrongSettings(
            f"the server does not log changes of {', '.join(unlogged)}",
            why="binlog_do_db or binlog_ignore_db leaves them out of its log",
            hint=FILTER_HINT,
        )
