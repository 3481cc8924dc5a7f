"""Cutting a table into chunks of equal numbers of rows, by walking the index of its key on the server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from pymysql.connections import Connection

from loader.errors import DataError, StagedDataError, UnsupportedError
from loader.initial_load.documents import Bound, LoadPlan
from loader.initial_load.keys import bound_expression, range_condition
from loader.model.table import ADDRESS_BYTES, Column
from loader.resources import sql
from loader.source.schemas import quote_name, quote_table
from loader.source.server_facts import query
from loader.source.table_sizes import TableSize

_LOG = logging.getLogger(__name__)
_REPORTED = 100  # chunks between two log lines
_CHUNK_BYTES = 32 * 1024 * 1024  # of the table's data; a task reads them in about a second
_FEWEST_ROWS, _MOST_ROWS = 1000, 1_000_000
_USUAL_ROWS = 100_000  # of a chunk, if the size of a row is unknown


def suggest_rows(size: TableSize) -> int:
    """Return the rows of a chunk for a table of this size."""
    if size.rows < _FEWEST_ROWS:
        return _USUAL_ROWS  # the statistics say nothing about the size of a row
    rows = _CHUNK_BYTES * size.rows // max(1, size.bytes)
    return max(_FEWEST_ROWS, min(_MOST_ROWS, rows))


def find_bounds(connection: Connection[Any], plan: LoadPlan, rows: int) -> Iterator[Bound]:
    """Yield the last key of every full chunk of `rows` rows, however sparse the keys are.

    Raises:
        MySQLError: from the driver.
        DataError: the server does not find later keys than a bound.
    """
    columns = [plan.definition.column(part.name) for part in plan.key]
    order = ", ".join(quote_name(part.name) + (" DESC" if part.descending else "") for part in plan.key)
    last: Bound | None = None
    number = 0
    with connection.cursor() as cursor:
        while True:
            statement = sql("initial_load/bound").format(
                values=", ".join(bound_expression(column) for column in columns),
                table=quote_table(plan.name),
                index=quote_name(plan.index),
                range=range_condition(plan, last, None),
                order=order,
                offset=rows - 1,
            )
            cursor.execute(statement)
            found = cursor.fetchone()
            if found is None:
                return
            bound = tuple(str(value) for value in found)
            if bound == last:
                raise _repeated_error(plan, bound)
            last = bound
            yield last
            number += 1
            if number % _REPORTED == 0:
                _LOG.info("table %s: %d chunks of %d rows found", plan.name, number, rows)


def _repeated_error(plan: LoadPlan, bound: Bound) -> DataError:
    return DataError(
        "the server finds the same key again when asked for later keys",
        why=f"the key is {bound}",
        hint="check the table: CHECK TABLE; then run the load again",
        table=plan.name,
    )


def select_expression(column: Column) -> str:
    """Return the expression that reads a column; MariaDB's UUID, INET4 and INET6 are read as text."""
    name = quote_name(column.name)
    return f"CAST({name} AS CHAR)" if column.type in ADDRESS_BYTES else name


def chunk_query(plan: LoadPlan, number: int) -> str:
    """Return the statement that reads a chunk.

    Raises:
        StagedDataError: the plan selects other expressions than the loader would.
    """
    if plan.select != tuple(map(select_expression, plan.definition.columns)):
        raise StagedDataError(
            "the plan of an initial load selects other expressions than the columns of its table",
            why=", ".join(plan.select),
            hint=f"check who else can write to the store, then: {plan.name.load_again}",
            table=plan.name,
        )
    return sql("initial_load/chunk").format(columns=", ".join(plan.select), **_place(plan, number))


def _place(plan: LoadPlan, number: int) -> dict[str, str]:
    return {
        "table": quote_table(plan.name),
        "index": f" FORCE INDEX ({quote_name(plan.index)})" if plan.key else "",
        "range": range_condition(plan, *plan.chunk(number)),
    }


def check_offsets(connection: Connection[Any], plan: LoadPlan, number: int) -> None:
    """Check that no row of a chunk has a text with a time zone offset that a virtual column may convert.

    Raises:
        UnsupportedError: a row may have one. The log then has another value of the virtual column than a load.
    """
    names = [f"CAST({quote_name(name)} AS CHAR)" for name in plan.offset_texts]
    texts = " OR ".join(f"{name} LIKE '%{sign}__:__%'" for name in names for sign in "+-")
    if names and query(connection, sql("initial_load/offset_text").format(texts=texts, **_place(plan, number))):
        raise UnsupportedError(
            "virtual columns may convert texts with a time zone offset to the time zone of the session",
            why=f"rows have such texts in {', '.join(plan.offset_texts)}; the log has the values of the sessions that"
            " wrote the rows, and a load reads those of its own, in UTC",
            hint=f"make the virtual columns STORED, or {plan.name.exclusion}",
            table=plan.name,
        )
