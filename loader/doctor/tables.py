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
from loader.source.log_filters import FILTER_HINT, find_unlogged_schemas
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


def logged(tables: Sequence[TableName], do: set[str], ignore: set[str]) -> list[Finding]:
    """Return an error for schemas that the server leaves out of its log, or a warning for others.

    `do`, `ignore`: see `read_filters`.
    """
    if not (do or ignore):
        return []
    if unlogged := find_unlogged_schemas(tables, do, ignore):
        return [error("tables", f"the server does not log changes of {listed(unlogged)}", FILTER_HINT)]
    what = "the server does not log statements such as TRUNCATE of sessions whose default schema is filtered"
    return [warning("tables", what, FILTER_HINT)]
