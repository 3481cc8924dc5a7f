"""The chunks of a table: how many rows they have, and the statements that read them."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.errors import StagedDataError, UnsupportedError
from loader.initial_load.documents import LoadPlan
from loader.initial_load.keys import middle_condition, range_condition, range_parts
from loader.model.table import ADDRESS_BYTES, Column
from loader.resources import sql
from loader.source.schemas import quote_name, quote_table
from loader.source.server_facts import query
from loader.source.table_sizes import TableSize

_CHUNK_BYTES = 32 * 1024 * 1024  # of the table's data; a task reads them in about a second
_FEWEST_ROWS, _MOST_ROWS = 1000, 1_000_000
_USUAL_ROWS = 100_000  # of a chunk, if the size of a row is unknown


def suggest_rows(size: TableSize) -> int:
    """Return the rows of a chunk for a table of this size."""
    if size.rows < _FEWEST_ROWS:
        return _USUAL_ROWS  # the statistics say nothing about the size of a row
    rows = _CHUNK_BYTES * size.rows // max(1, size.bytes)
    return max(_FEWEST_ROWS, min(_MOST_ROWS, rows))


def select_expression(column: Column) -> str:
    """Return the expression that reads a column; MariaDB's UUID, INET4 and INET6 are read as text."""
    name = quote_name(column.name)
    return f"CAST({name} AS CHAR)" if column.type in ADDRESS_BYTES else name


def chunk_conditions(connection: Connection[Any], plan: LoadPlan, number: int) -> tuple[str, ...]:
    """Return conditions that a row of a chunk fulfils exactly one of, in the order of the key.

    Raises:
        MySQLError: from the driver.
    """
    lower, upper = plan.chunk(number)
    middle = middle_condition(plan, lower, upper)
    if middle and not _has_row(connection, plan, middle):
        return (range_condition(plan, lower, upper),)
    return range_parts(plan, lower, upper)


def chunk_query(plan: LoadPlan, condition: str) -> str:
    """Return the statement that reads the rows of a chunk that fulfil a condition.

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
    return sql("initial_load/chunk").format(columns=", ".join(plan.select), **_place(plan, condition))


def _has_row(connection: Connection[Any], plan: LoadPlan, condition: str) -> bool:
    return bool(query(connection, sql("initial_load/any_row").format(**_place(plan, condition))))


def _place(plan: LoadPlan, condition: str) -> dict[str, str]:
    return {
        "table": quote_table(plan.name),
        "index": f" FORCE INDEX ({quote_name(plan.index)})" if plan.key else "",
        "range": condition,
    }


def check_offsets(connection: Connection[Any], plan: LoadPlan, number: int) -> None:
    """Check that no row of a chunk has a text with a time zone offset that a virtual column may convert.

    Raises:
        UnsupportedError: a row may have one. The log then has another value of the virtual column than a load.
    """
    names = [f"CAST({quote_name(name)} AS CHAR)" for name in plan.offset_texts]
    texts = " OR ".join(f"{name} LIKE '%{sign}__:__%'" for name in names for sign in "+-")
    condition = f"({range_condition(plan, *plan.chunk(number))}) AND ({texts})"
    if names and _has_row(connection, plan, condition):
        raise UnsupportedError(
            "virtual columns may convert texts with a time zone offset to the time zone of the session",
            why=f"rows have such texts in {', '.join(plan.offset_texts)}; the log has the values of the sessions that"
            " wrote the rows, and a load reads those of its own, in UTC",
            hint=f"make the virtual columns STORED, or {plan.name.exclusion}",
            table=plan.name,
        )
