"""Checks of the captured tables: whether they can be loaded, and whether the log has all their changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pymysql.connections import Connection

from loader.doctor.finding import Finding, error, of_error, ok, warning
from loader.doctor.grants import listed
from loader.errors import LoaderError
from loader.model.table import TableName, TableSchema
from loader.source.foreign_keys import find_unlogged_tables
from loader.source.schemas import read_schemas
from loader.source.virtual_columns import check_virtual_columns
from loader.staging.documents import TableFilter

_EXCLUDE = "or exclude them: tables.exclude"


def found(tables: Sequence[TableName], wanted: TableFilter) -> Finding:
    """Check that there is a table to load."""
    if tables:
        return ok("tables", f"{len(tables)} captured: {listed(map(str, tables))}")
    cure = "check tables.include, and grant SELECT on the schemas: sql/source/grants.sql"
    return error("tables", f"the user sees no table of {', '.join(wanted.include)}", cure)


def supported(connection: Connection[Any], tables: Sequence[TableName]) -> list[Finding]:
    """Return an error for each table that is not supported, and a warning for tables without a key."""
    findings: list[Finding] = []
    keyless: list[TableSchema] = []
    for name in tables:
        try:
            (schema,) = read_schemas(connection, [name])
            check_virtual_columns(connection, schema)
        except LoaderError as refused:
            findings.append(of_error("tables", refused))
            continue
        keyless += [] if schema.key else [schema]
    if keyless:
        names = listed(str(schema.name) for schema in keyless)
        cure = f"they are loaded in one piece, and merged by comparing whole rows: add a primary key, {_EXCLUDE}"
        findings.append(warning("keys", f"no primary key: {names}", cure))
    elif tables and not findings:
        findings.append(ok("keys", "every captured table has a key, and its types are supported"))
    return findings


def cascades(connection: Connection[Any], tables: Sequence[TableName]) -> list[Finding]:
    """Return an error for tables whose rows foreign keys change without logging it: their loads are refused."""
    changed = find_unlogged_tables(connection, tables)
    if not changed:
        return []
    what = f"foreign keys change rows of {listed(map(str, changed))} without logging it"
    return [
        error("tables", what, f"make the foreign keys RESTRICT and let the application change the rows, {_EXCLUDE}")
    ]


def markers(wanted: Collection[TableName], seen: Collection[TableName]) -> list[Finding]:
    """Return a warning for marker tables that do not exist or that the user cannot see."""
    unseen = sorted(name for name in wanted if name not in seen)
    if not unseen:
        return []
    cure = "check skip.marker_tables, and GRANT SELECT on these tables to the loader's user"
    return [warning("markers", f"the user sees no table {listed(map(str, unseen))}: check the name", cure)]


def logged(tables: Sequence[TableName], only: str, never: str) -> list[Finding]:
    """Return an error for schemas that binlog_do_db or binlog_ignore_db keep out of the log, or a warning for others.

    Rows are filtered by the schema of their table, but statements by the default schema of their session.
    """
    wanted = dict.fromkeys(name.schema for name in tables)
    kept, left_out = set(filter(None, only.split(","))), set(never.split(","))
    unlogged = [schema for schema in wanted if (kept and schema not in kept) or schema in left_out]
    if not (kept or left_out - {""}):
        return []
    cure = (
        "remove binlog_do_db and binlog_ignore_db from its configuration, restart the server, and load the tables again"
    )
    if not unlogged:
        what = "the server does not log statements such as TRUNCATE of sessions whose default schema is filtered"
        return [warning("tables", what, cure)]
    return [error("tables", f"the server does not log changes of {listed(unlogged)}", cure)]
