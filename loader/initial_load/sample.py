"""A sample of a table, to measure how fast it can be read."""

from __future__ import annotations

import time

from loader.initial_load.chunks import select_expression
from loader.initial_load.result_set.reader import ResultReader, prepare_session
from loader.model.table import TableName
from loader.resources import sql
from loader.source.schemas import quote_table, read_schemas
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected


def sample_rows_per_second(server: ServerAddress, table: TableName, rows: int) -> float:
    """Read the first rows of a table, throw them away, and return how many were read per second.

    Raises:
        LoaderError: the server does not answer, or a row does not fit its columns.
    """
    with connected(server) as connection:
        (schema,) = read_schemas(connection, [table])
        prepare_session(connection)
        reader = ResultReader(connection, schema, b"", hex_fallback=True)
        statement = sql("initial_load/sample").format(
            columns=", ".join(map(select_expression, schema.columns)),
            table=quote_table(table),
            rows=rows,
        )
        began = time.monotonic()
        read = reader.read(statement, lambda _: None)
        return read / (time.monotonic() - began)
