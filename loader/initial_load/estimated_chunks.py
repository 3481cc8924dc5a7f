"""Cutting a large table into chunks by an integer key, without reading it: the server estimates the rows of ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from pymysql.connections import Connection

from loader.initial_load.documents import Bound, LoadPlan
from loader.initial_load.keys import range_condition
from loader.resources import sql
from loader.source.schemas import quote_name, quote_table
from loader.source.server_facts import query, query_named
from loader.source.table_sizes import TableSize
from loader.types.catalogue import type_of
from loader.types.column_type import Encoding

_FEWEST_ROWS = 500_000  # a server reads the keys of fewer in a moment
_SLICES = 16  # of the keys, to compare the sum of the estimates with the rows of the table

Estimate = Callable[[int, int], int]
"""Returns the estimated rows whose keys are in a range, from the first number up to and including the second."""


def has_estimates(plan: LoadPlan, size: TableSize) -> bool:
    """Return whether ranges of a table's key are numbers that can be divided, and reading all keys takes long."""
    if len(plan.key) != 1 or plan.key[0].descending or size.rows < _FEWEST_ROWS:
        return False
    return type_of(plan.definition.column(plan.key[0].name)).encoding is Encoding.INTEGER


def estimate_bounds(connection: Connection[Any], plan: LoadPlan, size: TableSize, rows: int) -> Iterator[Bound]:
    """Yield the last key of each chunk except the last. A chunk has about `rows` rows, however sparse the keys are.

    Raises:
        MySQLError: from the driver.
    """
    table = quote_table(plan.name)
    key, index = quote_name(plan.key[0].name), quote_name(plan.index)
    ((first, last),) = query(connection, sql("initial_load/key_ends").format(key=key, table=table, index=index))
    server = plan.identity.kind

    def estimate(low: int, high: int) -> int:
        condition = range_condition(plan, None if low == first else (str(low - 1),), (str(high),))
        statement = sql(f"initial_load/rows_estimate_{server}").format(table=table, index=index, range=condition)
        return sum(int(row["rows"] or 0) for row in query_named(connection, statement))

    if first is not None:
        ends = int(first), int(last)
        yield from ((str(bound),) for bound in cut(calibrated(estimate, *ends, size.rows), *ends, rows))


def calibrated(estimate: Estimate, first: int, last: int, rows: int) -> Estimate:
    """Return estimates that add up to the rows of the table. InnoDB doubles those of ranges of many pages."""
    found = sum(estimate(low, high) for low, high in _divided(first, last, _SLICES))
    return lambda low, high: -(-estimate(low, high) * rows // max(found, rows))


def _divided(first: int, last: int, parts: int) -> list[tuple[int, int]]:
    """Divide a range of numbers into ranges of about the same width."""
    width = last - first + 1
    starts = [first + width * part // parts for part in range(parts + 1)]
    return [(start, end - 1) for start, end in pairwise(starts) if start < end]


def cut(estimate: Estimate, first: int, last: int, rows: int) -> Iterator[int]:
    """Yield the last number of each chunk but the last: chunks of about `rows` rows, and at most half as many more."""
    most = rows + rows // 2
    end, held = first, 0
    for high, found in _parts(estimate, first, last, rows, most):
        if held and held + found > most:
            yield end
            held = 0
        end, held = high, held + found


def _parts(estimate: Estimate, first: int, last: int, rows: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of parts of the numbers that have at most `most` rows, with their estimated rows, in order."""
    waiting = [(first, last)]
    while waiting:
        low, high = waiting.pop()
        found = min(estimate(low, high), high - low + 1)
        if found <= most:
            yield high, found
            continue
        waiting += _divided(low, high, -(-found // rows))[::-1]
