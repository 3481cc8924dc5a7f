"""Schemas of tables for a log that lacks names, keys or character sets: from a SQL dump or a server.

A dump is what `mysqldump --no-data` writes: its CREATE TABLE statements are read, and USE for the database. Tables of a
dump that names no database are those of that name in any database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from loader.errors import UsageError
from loader.model.name_folding import folded_table
from loader.model.table import TableName, TableSchema
from loader.reader.known_schemas import Known
from loader.reader.locations.uri import server_of
from loader.schema.changes import Unreadable
from loader.schema.history import SchemaHistory
from loader.schema.statements import schema_changes

_PIECE = re.compile(
    r"""(?P<delimiter>(?<![^\n])DELIMITER[ \t]+(?P<mark>\S+)[^\n]*)
      | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `[^`]*`
      | (?P<comment>--(?=\s)[^\n]* | \#[^\n]*) | /\*.*?\*/
      | (?P<other>.)""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
_USE = re.compile(r"\s*USE\s+(?:`((?:[^`]|``)+)`|(\S+))\s*\Z", re.IGNORECASE)
_DUMP = "mysqldump --no-data --databases NAME > dump.sql"


def read_schemas(place: str) -> Known:
    """Return a function that knows the tables of a dump (a path) or of a server (`mysql://user@host/`).

    Raises:
        UsageError: there is no such file, it defines no table, or one of its tables cannot be read.
        SourceUnavailable, AccessDenied: the server does not answer.
    """
    return _of_server(place) if "://" in place else _of_dump(Path(place))


def _of_server(place: str) -> Known:
    from loader.source.bulk_schemas import read_tables
    from loader.transport.server.connection import connected

    address = server_of(place)
    if address is None:
        raise UsageError(
            f"{place} is not the address of a server", hint="give --schema dump.sql or --schema mysql://user@host/"
        )
    with connected(address) as connection:
        found = read_tables(connection, lambda _: True)

    def known(name: TableName) -> TableSchema | None:
        folded = folded_table(name) if found.folds else name
        table = found.tables.get(folded)
        return replace(table.schema, name=name) if table and table.schema else None

    return known


def _of_dump(path: Path) -> Known:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("the file of --schema cannot be read", why=str(error), hint=_DUMP, path=path) from error
    history = _followed(text)
    tables: dict[TableName, TableSchema] = {}
    for name, table in history.tables().items():
        if table.schema is None or table.unreadable_why:
            raise UsageError(
                "a CREATE TABLE statement cannot be read",
                why=table.unreadable_why,
                hint=f"take the definition from the server: {_DUMP}",
                path=path,
                table=_shown(name),
            )
        tables[name] = table.schema
    if not tables:
        raise UsageError("the file of --schema defines no table", hint=_DUMP, path=path)

    def known(name: TableName) -> TableSchema | None:
        schema = tables.get(name) or tables.get(TableName("", name.table))
        return replace(schema, name=name) if schema else None

    return known


def _followed(dump: str) -> SchemaHistory:
    """Return the tables that the statements of a dump define. Ignore statements that do not concern tables."""
    mariadb = "MariaDB" in dump
    history, database = SchemaHistory(), ""
    for statement in split_statements(dump):
        if use := _USE.match(statement):
            database = use[1].replace("``", "`") if use[1] else use[2]
            continue
        changes = schema_changes(statement, database, 0, mariadb)
        of_tables = [one for one in changes if not (isinstance(one, Unreadable) and one.table is None)]
        history.apply(0, "", of_tables, statement)
    return history


def split_statements(dump: str) -> Iterator[str]:
    """Return the statements of a dump, without the delimiters and comments between them."""
    delimiter, start, skip_to = ";", 0, 0
    for piece in _PIECE.finditer(dump):
        if piece["delimiter"]:
            delimiter, start = piece["mark"], piece.end()
        elif piece.start() >= skip_to and piece["other"] and dump.startswith(delimiter, piece.start()):
            if statement := dump[start : piece.start()].strip():
                yield statement
            start = skip_to = piece.start() + len(delimiter)
    if statement := dump[start:].strip():
        yield statement


def _shown(name: TableName) -> str:
    return str(name) if name.schema else name.table
