"""Sessions that log statements instead of rows, and the triggers that matter then."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.err import MySQLError

from loader.doctor.finding import Finding, warning
from loader.doctor.grants import listed
from loader.model.table import TableName
from loader.resources import sql
from loader.source.server_facts import query

_NOT_READABLE = {ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.NO_SUCH_TABLE}
"""MariaDB has no such table, and the loader's user may lack the privilege."""
_WORD = re.compile(r"[\w$]+")


def by_statement(
    connection: Connection[Any], captured: Collection[TableName], variables: Mapping[str, str]
) -> list[Finding]:
    """Return warnings for sessions that log statements, and for triggers whose writes are then not logged.

    With row logging, the log has the rows that a trigger writes. Then triggers do not matter.
    """
    sessions = _sessions(connection)
    found = []
    if sessions:
        what = f"sessions that do not log rows: {listed(sessions)}"
        cure = (
            "SET SESSION binlog_format = ROW in these sessions, or end them: a table that a statement may change stops"
        )
        found.append(warning("binlog_format", what, cure))
    if sessions or variables.get("binlog_format", "ROW") != "ROW":
        found += _triggers(connection, captured)
    return found


def _sessions(connection: Connection[Any]) -> list[str]:
    try:
        rows = query(connection, sql("source/statement_sessions"))
    except MySQLError as error:
        if error.args[0] in _NOT_READABLE:
            return []
        raise
    return [f"{number} of {user} ({value})" for number, user, value in rows]


def _triggers(connection: Connection[Any], captured: Collection[TableName]) -> list[Finding]:
    """Return a warning for triggers of other tables whose text has the name of a captured table, in any schema."""
    names = {name.table.casefold(): name for name in captured}
    found = []
    for schema, table, action in query(connection, sql("source/triggers")):
        words = {word.casefold() for word in _WORD.findall(str(action))}
        reached = sorted(str(names[word]) for word in names.keys() & words)
        if reached and TableName(str(schema), str(table)) not in captured:
            found.append(f"{schema}.{table} ({', '.join(reached)})")
    if not found:
        return []
    what = f"triggers of tables that are not captured write to captured tables: {listed(found)}"
    return [
        warning(
            "triggers",
            what,
            "set binlog_format = ROW in all sessions: a logged statement does not show what a trigger wrote",
        )
    ]
