"""The captured tables: whether they can be loaded, and whether all of their changes reach the log."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pymysql.connections import Connection

from loader.doctor.finding import Finding, error, of_error, ok, warning
from loader.doctor.grants import listed
from loader.errors import LoaderError
from loader.model.table import TableName, TableSchema
from loader.source.schemas import quote_name, read_schemas
from loader.source.server_facts import query
from loader.staging.documents import TableFilter

_EXCLUDE = "or exclude them: tables.exclude"
_CASCADES = re.compile(
    r"^ *CONSTRAINT .* FOREIGN KEY .* ON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT)", re.MULTILINE
)


def found(tables: Sequence[TableName], wanted: TableFilter) -> Finding:
    """Whether there is anything to load."""
    if tables:
        return ok("tables", f"{len(tables)} captured: {listed(map(str, tables))}")
    cure = "check tables.include, and grant SELECT on the schemas: sql/source/grants.sql"
    return error("tables", f"the user sees no table of {', '.join(wanted.include)}", cure)


def supported(connection: Connection[Any], tables: Sequence[TableName]) -> list[Finding]:
    """An error for each table with something that is not covered, and a warning for those without a key."""
    findings: list[Finding] = []
    keyless: list[TableSchema] = []
    for name in tables:
        try:
            (schema,) = read_schemas(connection, [name])
        except LoaderError as refused:
            findings.append(of_error("tables", refused))
            continue
        keyless += [] if schema.key else [schema]
    if keyless:
        names = listed(str(schema.name) for schema in keyless)
        cure = f"they are loaded in one piece, and changed by comparing whole rows: give them one, {_EXCLUDE}"
        findings.append(warning("keys", f"no primary key: {names}", cure))
    elif tables and not findings:
        findings.append(ok("keys", "every captured table has one, and types that are covered"))
    return findings


def cascades(connection: Connection[Any], tables: Sequence[TableName], variables: Mapping[str, str]) -> list[Finding]:
    """An error for tables that foreign keys change behind the log's back.

    InnoDB does it below the log (MySQL manual, "Replication and Foreign Keys"), but for MySQL from 9.6 on, where the
    server itself does, unless innodb_native_foreign_keys is set.
    """
    if variables.get("innodb_native_foreign_keys") == "OFF":
        return []
    changed = [name for name in tables if _CASCADES.search(_declared(connection, name))]
    if not changed:
        return []
    what = f"foreign keys change rows of {listed(map(str, changed))} without a word in the log"
    return [error("tables", what, f"make them RESTRICT and let the application change the rows, {_EXCLUDE}")]


def _declared(connection: Connection[Any], name: TableName) -> str:
    """CREATE TABLE: unlike information_schema, MariaDB shows it to who may only read the table."""
    return str(query(connection, f"SHOW CREATE TABLE {quote_name(name.schema)}.{quote_name(name.table)}")[0][1])


def markers(wanted: Collection[TableName], seen: Collection[TableName]) -> list[Finding]:
    """A warning for marker tables that are not there or that the user may not see."""
    unseen = sorted(name for name in wanted if name not in seen)
    if not unseen:
        return []
    cure = "check skip.marker_tables, and GRANT SELECT on them to the loader's user, so that this can be checked"
    return [warning("markers", f"the user sees no table {listed(map(str, unseen))}: is it called so?", cure)]


def logged(tables: Sequence[TableName], only: str, never: str) -> list[Finding]:
    """An error for schemas that the server does not log: its binlog_do_db and binlog_ignore_db."""
    wanted = dict.fromkeys(name.schema for name in tables)
    kept, left_out = set(filter(None, only.split(","))), set(never.split(","))
    unlogged = [schema for schema in wanted if (kept and schema not in kept) or schema in left_out]
    if not unlogged:
        return []
    cure = "take binlog_do_db and binlog_ignore_db out of its configuration, restart it, and load the tables again"
    return [error("tables", f"the server does not log changes of {listed(unlogged)}", cure)]
