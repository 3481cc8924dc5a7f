"""Bounds of chunks of equal numbers of rows, by walking the index of the key on the server."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from loader.errors import DataError
from loader.initial_load.bounds.key_index import KeyIndex
from loader.initial_load.documents import Bound, LoadPlan

_LOG = logging.getLogger(__name__)
_REPORTED = 100  # chunks between two log lines


def walk_bounds(index: KeyIndex, rows: int, low: Bound | None = None, high: Bound | None = None) -> Iterator[Bound]:
    """Yield the last key of every full chunk of `rows` rows in a range, however sparse the keys are.

    Raises:
        MySQLError: from the driver.
        DataError: the server does not find later keys than a bound.
    """
    number = 0
    while (bound := index.key_at(low, high, rows - 1)) is not None:
        if bound == low:
            raise _repeated_error(index.plan, bound)
        low = bound
        yield bound
        number += 1
        if number % _REPORTED == 0:
            _LOG.info("table %s: %d chunks of %d rows found", index.plan.name, number, rows)


def _repeated_error(plan: LoadPlan, bound: Bound) -> DataError:
    return DataError(
        "the server finds the same key again when asked for later keys",
        why=f"the key is {bound}",
        hint="check the table: CHECK TABLE; then run the load again",
        table=plan.name,
    )
