"""The tables as the server has them, for logs without column names: for a new generation, and for a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pymysql.connections import Connection

from loader.binlog.values.codepages import is_encodable
from loader.errors import RetryableError
from loader.model.position import Position
from loader.model.table import Column, TableName
from loader.schema.alteration import Key
from loader.schema.history import KnownTable
from loader.settings import SourceSettings
from loader.source.bulk_schemas import ServerTable, read_tables
from loader.source.schemas import find_sequences, find_tables
from loader.source.server_facts import log_end, logs_names
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation
from loader.staging.filters import CapturedTables
from loader.staging.schemas import GivenSchema, Schemas, SchemaStore
from loader.transport.server.connection import connected

_TRIES = 5
_BEYOND_UFFFF = "\U00010000"


def read_at_log_end(connection: Connection[Any], settings: SourceSettings) -> tuple[Schemas, Position]:
    """Return the captured tables, and an end of the log at which they have these definitions.

    The tables are read before and after the end of the log, until both readings are equal.

    Raises:
        RetryableError: tables are altered continually.
    """
    captured = CapturedTables(settings.tables)
    before = _read(connection, captured)
    for _ in range(_TRIES):
        end = log_end(connection)
        after = _read(connection, captured)
        if after == before:
            return after, end
        before = after
    raise RetryableError(
        "tables were altered continually while their columns were read",
        hint="run again when no statement alters captured tables",
        source=settings.name,
    )


def store_new_tables(connection: Connection[Any], settings: SourceSettings, store: SchemaStore, digest: str) -> str:
    """Store the captured tables that the document `digest` lacks, and return the digest of theirs; empty without any.

    They are new in the configuration, or were created since. In the second case, the statement in the log overrides
    this document.
    """
    captured, told = CapturedTables(settings.tables), store.get(digest)
    known = {str(table.name).lower() for table in told.tables}
    names = {name for name in find_tables(connection, captured) if str(name).lower() not in known}
    return store.put(_read(connection, names.__contains__)) if names else ""


def find_new_sequences(
    connection: Connection[Any], captured: Callable[[TableName], bool], known: Schemas
) -> list[TableName]:
    """Return MariaDB's sequences that match the filter, except those with the name of a known table.

    The log of such a table goes on until it is dropped.
    """
    names = {one.table.lower() for one in known.tables}
    return [name for name in find_sequences(connection, captured) if str(name).lower() not in names]


def describe_tables(
    settings: SourceSettings, chain: PlanChain, generation: Generation, only: tuple[str, ...] = ()
) -> None:
    """Store the definitions of captured tables at the end of the log, if the log lacks column names.

    `only`: limits them to these tables (`schema.table`). From there on the tables can be read even if earlier rows
    could not, as required when they are loaded again.

    Raises:
        RetryableError: tables are altered continually.
    """
    with connected(settings.server) as connection:
        if logs_names(connection):
            return
        now, end = read_at_log_end(connection, settings)
    store = SchemaStore(chain.store, settings.name)
    before = {table.table: table for table in store.get(chain.newest_checkpoint(generation).schemas).tables}
    seqno = end.seqno(generation.shift)
    for table in now.tables:
        if table != before.get(table.table) and (not only or table.table in only) and not table.known().unreadable_why:
            store.keep(
                GivenSchema(source=settings.name, generation=generation.name, at=str(end), seqno=seqno, table=table)
            )


def _read(connection: Connection[Any], wanted: Callable[[TableName], bool]) -> Schemas:
    found = read_tables(connection, wanted)
    return Schemas.of({name: _known(table) for name, table in found.tables.items()}, found.charsets, folds=found.folds)


def _known(found: ServerTable) -> KnownTable:
    if found.schema is None:
        return KnownTable(None, Key((), sure=True), found.charset, found.why)
    known = KnownTable.of(found.schema, primary=found.primary, others=found.others, charset=found.charset)
    doubtful = [column.name for column in found.schema.columns if _has_doubtful_labels(column)]
    if not doubtful:
        return known
    columns = (replace(one, labels=()) if one.name in doubtful else one for one in found.schema.columns)
    why = f"the server shows ? for characters beyond U+FFFF in the labels of {', '.join(doubtful)}"
    return replace(known, schema=replace(found.schema, columns=tuple(columns)), why=why)


def _has_doubtful_labels(column: Column) -> bool:
    """Return whether labels can have characters that information_schema cannot show: its character set is utf8mb3."""
    return any("?" in label for label in column.labels) and is_encodable(column.charset, _BEYOND_UFFFF)
