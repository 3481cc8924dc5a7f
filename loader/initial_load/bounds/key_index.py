"""Queries on the index of a table's key: single keys of a range, and the estimated rows of a range."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.initial_load.documents import Bound, LoadPlan
from loader.initial_load.keys import bound_expression, range_condition, up_to_condition
from loader.resources import sql
from loader.source.schemas import quote_name, quote_table
from loader.source.server_facts import query, query_named


class KeyIndex:
    """Reads keys of a planned table as bounds. A range has the keys after `low` up to and including `high`.

    All methods raise MySQLError, from the driver.
    """

    def __init__(self, connection: Connection[Any], plan: LoadPlan) -> None:
        self._connection = connection
        self.plan = plan
        self._names = {"table": quote_table(plan.name), "index": quote_name(plan.index)}

    def estimate(self, low: Bound | None, high: Bound | None) -> int:
        """Return how many rows the server estimates for a range. It reads a few pages of the index."""
        statement = sql(f"initial_load/rows_estimate_{self.plan.identity.kind}")
        found = query_named(
            self._connection, statement.format(**self._names, range=range_condition(self.plan, low, high))
        )
        return sum(int(row["rows"] or 0) for row in found)

    def key_at(self, low: Bound | None, high: Bound | None, offset: int) -> Bound | None:
        """Return the key that is `offset` rows after the first key of a range, or None if the range is shorter."""
        return self._key(range_condition(self.plan, low, high), offset)

    def last_key(
        self, low: Bound | None = None, high: Bound | None = None, up_to: tuple[int, str] | None = None
    ) -> Bound | None:
        """Return the last key of a range, or None if it has no key.

        `up_to`: the place of a key column, and a value. Keys whose column is after the value do not count.
        """
        condition = range_condition(self.plan, low, high)
        if up_to:
            condition += f" AND {up_to_condition(self.plan, *up_to)}"
        return self._key(condition, backward=True)

    def _key(self, condition: str, offset: int = 0, *, backward: bool = False) -> Bound | None:
        columns = [self.plan.definition.column(part.name) for part in self.plan.key]
        order = [quote_name(part.name) + (" DESC" if part.descending != backward else "") for part in self.plan.key]
        statement = sql("initial_load/key").format(
            **self._names,
            values=", ".join(map(bound_expression, columns)),
            range=condition,
            order=", ".join(order),
            offset=offset,
        )
        found = query(self._connection, statement)
        return tuple(str(value) for value in found[0]) if found else None
