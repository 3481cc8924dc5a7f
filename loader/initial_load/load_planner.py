"""Planning an initial load: its position, schema and chunks."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

from pymysql.connections import Connection
from pymysql.err import MySQLError

from loader.errors import GapError, RetryableError, UsageError
from loader.initial_load.bounds.index_walk import walk_bounds
from loader.initial_load.bounds.key_index import KeyIndex
from loader.initial_load.bounds.range_division import estimate_bounds, has_estimates
from loader.initial_load.chunks import select_expression, suggest_rows
from loader.initial_load.definition_check import altered_error, check_unaltered, is_altered
from loader.initial_load.documents import Bound, KeyColumn, LoadPlan
from loader.initial_load.server.commit_visibility import wait_until_visible
from loader.initial_load.server.replica import check_reader, check_same_definition, gtids_to_wait_for
from loader.initial_load.server.throttle import wait_for_server
from loader.initial_load.spec import InitialLoadSpec
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.resources import sql
from loader.source.continuity import check_log_holds
from loader.source.digest import definition_digest
from loader.source.loadable import check_loadable
from loader.source.schemas import TableKey, read_key, read_schemas, read_unlogged
from loader.source.server_facts import log_end, query
from loader.source.table_sizes import TableSize, read_size
from loader.source.virtual_columns import find_offset_texts
from loader.transport.server.connection import connected

_LOG = logging.getLogger(__name__)


def plan_load(connection: Connection[Any], spec: InitialLoadSpec, table: TableName, key: TableKey) -> LoadPlan:
    """Return the plan of a load that begins now, with chunks by this key.

    The position is taken before the first read of the table. That read sees everything that the log has up to the
    position. A replica is read only after it has everything up to the position. A table whose index has another order
    than conditions becomes one chunk: an index of prefixes, or of padded values.

    Raises:
        UnsupportedError: the table is not supported.
        RetryableError: the table is being altered, or commits hang.
    """
    digest = definition_digest(connection, table)
    schema = _schema(connection, table)
    if read_key(connection, table) != key or schema.key != key.names:
        raise altered_error(table)
    check_loadable(connection, schema)
    position = log_end(connection)
    wait_until_visible(connection, position)
    gtids = gtids_to_wait_for(connection) if spec.read_from else ""
    parts = tuple(KeyColumn(name=part.name, descending=part.descending) for part in key.parts)
    plan = plan_single_chunk(connection, spec, schema, position, digest).model_copy(
        update={"index": key.index, "key": parts, "gtids": gtids}
    )
    ordered = not any(part.prefix for part in key.parts) and not _has_padded_key(connection, schema)
    size = read_size(connection, table)
    with connected(spec.read_from) if spec.read_from else nullcontext(connection) as reading:
        if spec.read_from:
            check_reader(reading, plan)
            check_same_definition(connection, reading, plan)
        bounds = _bounds(reading, plan, spec, size) if ordered else ()
    check_unaltered(connection, plan)
    _LOG.info("table %s: %d chunks, from position %s on", table, len(bounds) + 1, position)
    return plan.model_copy(update={"bounds": bounds})


def _has_padded_key(connection: Connection[Any], schema: TableSchema) -> bool:
    chars = {name for name in schema.key if schema.column(name).type == "char"}
    if not chars:
        return False
    with connection.cursor() as cursor:
        cursor.execute(sql("initial_load/padded_columns"), (schema.name.schema, schema.name.table))
        return not chars.isdisjoint(str(column) for (column,) in cursor.fetchall())


def _schema(connection: Connection[Any], table: TableName) -> TableSchema:
    """Return the schema of a table that existed when the tables to load were listed."""
    try:
        return read_schemas(connection, [table])[0]
    except UsageError as error:
        raise RetryableError(
            "the table was dropped or renamed while its initial load was planned", hint="run again", table=table
        ) from error


def _bounds(connection: Connection[Any], plan: LoadPlan, spec: InitialLoadSpec, size: TableSize) -> tuple[Bound, ...]:
    """Return the bounds of the chunks. Wait for the server before each, because it may walk an index for them.

    Raises:
        RetryableError: the table was altered, so the server refuses to read it as planned.
    """
    rows = spec.chunk_rows or suggest_rows(size)
    index = KeyIndex(connection, plan)
    estimated = not spec.chunk_rows and has_estimates(plan, size)
    found = estimate_bounds(index, size, rows) if estimated else walk_bounds(index, rows)
    bounds = []
    try:
        wait_for_server(connection, spec.limits)
        for bound in found:
            bounds.append(bound)
            wait_for_server(connection, spec.limits)
        return tuple(bounds)
    except MySQLError as error:
        if connection.open and is_altered(connection, plan):
            raise altered_error(plan.name) from error
        raise


def plan_single_chunk(
    connection: Connection[Any], spec: InitialLoadSpec, schema: TableSchema, position: Position, digest: str
) -> LoadPlan:
    """Return the plan of a load at a position, as one chunk without a key."""
    taken_at = query(connection, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)")[0][0]
    return LoadPlan(
        source=spec.source,
        generation=spec.generation,
        identity=spec.identity,
        position=str(position),
        shift=spec.shift,
        taken_at=str(taken_at),
        table_schema=schema.as_dict(),
        index="",
        key=(),
        bounds=(),
        select=tuple(select_expression(column) for column in schema.columns),
        digest=digest,
        undecodable=spec.undecodable,
        unlogged=read_unlogged(connection, schema.name),
        offset_texts=find_offset_texts(connection, schema),
    )


def can_resume(connection: Connection[Any], plan: LoadPlan) -> bool:
    """Return whether an unfinished load can be finished: position still in the log, definition unchanged."""
    try:
        check_log_holds(connection, Position.parse(plan.position))
    except GapError as error:
        _LOG.warning("table %s: the unfinished load is discarded: %s", plan.name, error)
        return False
    if not plan.digest:
        _LOG.warning("table %s: the unfinished load is discarded: an older version of the loader planned it", plan.name)
        return False
    if is_altered(connection, plan):
        _LOG.warning("table %s: the unfinished load is discarded: the table was altered since", plan.name)
        return False
    return True
