"""The session variables of every connection to a source, independent of the settings of the server.

`sql_select_limit` cuts more than results of SELECT: also SHOW BINARY LOGS, SHOW VARIABLES, SHOW INDEX and SHOW TABLES
end after so many rows (seen on MySQL 9.7, MariaDB 10.11 and 11.8). So it is set before anything is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymysql.connections import Connection

from loader.errors import UsageError
from loader.resources import sql

COMMON: Mapping[str, str] = {
    "time_zone": "+00:00",
    "sql_mode": "",
    "sql_select_limit": "18446744073709551615",
    "sql_big_selects": "ON",
    "net_write_timeout": "3600",  # a store may be slow while the server sends
    "wait_timeout": "604800",  # a connection is idle while a replica catches up, or another one reads a large table
    "completion_type": "NO_CHAIN",  # otherwise COMMIT and ROLLBACK can start a transaction or close the connection
    "sql_quote_show_create": "ON",
    "autocommit": "ON",  # PyMySQL trusts the greeting of the server, which is wrong if the global variable is OFF
}
"""Variables of every server, with their values as the server shows them."""

_UNLIMITED = {"max_execution_time": "0", "max_statement_time": "0.000000"}
"""No time limit for a statement: MySQL and MariaDB."""

_OPTIONAL: Mapping[str, str] = {
    # Only committed rows, and one snapshot for a transaction. MariaDB before 11.1 knows the first name alone.
    "tx_isolation": "REPEATABLE-READ",
    "transaction_isolation": "REPEATABLE-READ",
    # MariaDB can end a snapshot that is not read for a while.
    "idle_transaction_timeout": "0",
    "idle_readonly_transaction_timeout": "0",
    # A secondary copy of the rows may lag, and a cache is useless: MySQL HeatWave and MariaDB.
    "use_secondary_engine": "OFF",
    "query_cache_type": "OFF",
    # MySQL can hide the key that it generates for a table without a key. The log has it.
    "show_gipk_in_create_table_and_information_schema": "ON",
    # Definitions of tables read the same on every connection.
    "show_create_table_verbosity": "OFF",
    "show_create_table_skip_secondary_engine": "OFF",
    "show_old_temporals": "OFF",
}
"""Variables that some servers have."""

_CHECKED = {**COMMON, **_UNLIMITED, **_OPTIONAL}


def first_statement() -> str:
    """Return the first statement of a connection. Each server executes the comment for its kind and version.

    MySQL takes an invisible index for the key of a table, but chunks can be read by it only with a switch.
    """
    mysql = "/*!80000, max_execution_time = 0, optimizer_switch = 'use_invisible_indexes=on' */"
    return f"{_assignments(COMMON)} {mysql} /*M!100101, max_statement_time = 0 */"


def set_variables(connection: Connection[Any]) -> None:
    """Set the variables that only some servers have, and check all of them.

    Raises:
        UsageError: the session does not keep its variables, for example behind a proxy that shares connections.
        MySQLError: an error of the driver.
    """
    wrong = _differing(connection)
    if optional := {name: _OPTIONAL[name] for name in wrong if name in _OPTIONAL}:
        with connection.cursor() as cursor:
            cursor.execute(_assignments(optional))
        wrong = _differing(connection)
    if wrong:
        raise UsageError(
            "the session variables of a connection changed",
            why=", ".join(f"{name} is {value!r} and not {_CHECKED[name]!r}" for name, value in sorted(wrong.items())),
            hint="set the source to the server itself, without a proxy that shares connections between clients",
        )


def _differing(connection: Connection[Any]) -> dict[str, str]:
    """Return the variables that have another value on the server."""
    with connection.cursor() as cursor:
        cursor.execute(sql("source/session_variables"), (tuple(_CHECKED),))
        shown = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    found = {name: value for name, value in shown.items() if value != _CHECKED[name]}
    return found | {name: "not shown" for name in COMMON if name not in shown}


def _assignments(values: Mapping[str, str]) -> str:
    return "SET SESSION " + ", ".join(f"{name} = {_literal(value)}" for name, value in values.items())


def _literal(value: str) -> str:
    return value if value.replace(".", "").isdecimal() else f"'{value}'"
