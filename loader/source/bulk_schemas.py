"""Reads the schemas of all captured tables together: a few queries per database, however many tables it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pymysql.connections import Connection

from loader.errors import LoaderError
from loader.model.table import TableName, TableSchema
from loader.resources import sql
from loader.source.schemas import build_schema, catalog_names, read_columns, read_key
from loader.source.server_facts import folds_names, query

_AT_ONCE = 1000
"""Tables per query."""


@dataclass(frozen=True)
class ServerTable:
    """A table on the server.

    Attributes:
        schema: None if the table is not supported, and `why` says why.
        primary: its key is a primary key, not a unique key.
        others: it has unique keys besides its primary key.
        charset: of columns that declare none.
    """

    schema: TableSchema | None
    primary: bool = False
    others: bool = False
    charset: str = ""
    why: str = ""


@dataclass(frozen=True)
class ServerTables:
    """Captured tables on the server.

    Attributes:
        charsets: the default character set of each database.
        folds: the server compares table names without case.
    """

    tables: dict[TableName, ServerTable] = field(default_factory=dict)
    charsets: dict[str, str] = field(default_factory=dict)
    folds: bool = False


def read_tables(connection: Connection[Any], wanted: Callable[[TableName], bool]) -> ServerTables:
    """Return all wanted tables as they are now."""
    folds = folds_names(connection)
    charsets = {
        str(schema): _named(str(charset)) for schema, charset in query(connection, sql("source/schemas_charsets"))
    }
    found = ServerTables(charsets=charsets, folds=folds)
    kinds = {
        TableName(str(schema), str(table)): (str(kind), str(engine), str(collation))
        for schema, table, kind, engine, collation in query(connection, sql("source/schemas_kinds"))
    }
    names = sorted(name for name in kinds if wanted(name))
    for database in dict.fromkeys(name.schema for name in names):
        inside = [name for name in names if name.schema == database]
        for at in range(0, len(inside), _AT_ONCE):
            found.tables.update(_read(connection, database, inside[at : at + _AT_ONCE], kinds))
    return found


def _read(
    connection: Connection[Any],
    database: str,
    names: Sequence[TableName],
    kinds: Mapping[TableName, tuple[str, str, str]],
) -> dict[TableName, ServerTable]:
    """Return some tables of one database."""
    columns = read_columns(connection, database, names)
    keys = _unique_keys(connection, database, names)
    found = {}
    for name in names:
        kind, engine, collation = kinds[name]
        charset = _named(collation.split("_")[0])
        parts = keys.get(name, {})
        hashed = any(part[3] == "HASH" for key in parts.values() for part in key) and engine != "MEMORY"
        if kind == "SYSTEM VERSIONED" or hashed:
            found[name] = ServerTable(None, charset=charset, why="tables with hidden columns are not supported")
            continue
        try:
            found[name] = ServerTable(
                build_schema(name, columns[name], _key(connection, name, parts)),
                "PRIMARY" in parts,
                bool(parts.keys() - {"PRIMARY"}),
                charset,
            )
        except LoaderError as error:
            found[name] = ServerTable(None, charset=charset, why=error.what)
    return found


def _unique_keys(
    connection: Connection[Any], database: str, names: Sequence[TableName]
) -> dict[TableName, dict[str, list[tuple[str, int, bool, str]]]]:
    """Return the unique keys of each table: name, prefix length, nullability and kind of each column."""
    found: dict[TableName, dict[str, list[tuple[str, int, bool, str]]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(sql("source/schemas_keys"), (database, catalog_names(names)))
        for table, index, column, prefix, nullable, kind in cursor.fetchall():
            keys = found.setdefault(TableName(database, str(table)), {})
            keys.setdefault(str(index), []).append((str(column or ""), int(prefix), nullable == "YES", str(kind)))
    return found


def _key(
    connection: Connection[Any], name: TableName, keys: Mapping[str, Sequence[tuple[str, int, bool, str]]]
) -> tuple[str, ...]:
    """Return the key columns of a table; only read_key knows the server's order of unique keys."""
    if "PRIMARY" in keys:
        return tuple(column for column, *_ in keys["PRIMARY"])
    if any(all(column and not prefix and not null for column, prefix, null, _ in key) for key in keys.values()):
        key = read_key(connection, name)
        return key.names if key else ()
    return ()


def _named(charset: str) -> str:
    return "utf8mb3" if charset == "utf8" else charset
