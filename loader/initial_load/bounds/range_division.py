"""Bounds of the chunks of a large table without reading its keys: the server estimates the rows of ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from loader.initial_load.bounds.index_walk import walk_bounds
from loader.initial_load.bounds.key_index import KeyIndex
from loader.initial_load.bounds.key_values import is_divisible, values_between
from loader.initial_load.documents import Bound, LoadPlan
from loader.initial_load.keys import shared_columns
from loader.source.table_sizes import TableSize

_FEWEST_ROWS = 500_000  # a server reads the keys of fewer in a moment
_SLICES = 16  # of the keys, to compare the sum of the estimates with the rows of the table
_FEW_DIVISIONS = 8  # in a row that leave most rows in one part

_Estimate = Callable[[Bound | None, Bound], int]


class _Part(NamedTuple):
    """The keys after `low` up to and including `high`, and their estimated rows."""

    low: Bound | None
    high: Bound
    rows: int

    def has_most_of(self, whole: _Part) -> bool:
        return 4 * self.rows > 3 * whole.rows


def has_estimates(plan: LoadPlan, size: TableSize) -> bool:
    """Return whether ranges of a table's key can be divided by values, and reading all keys takes long."""
    return size.rows >= _FEWEST_ROWS and is_divisible(plan.definition.column(plan.key[0].name))


def estimate_bounds(index: KeyIndex, size: TableSize, rows: int) -> Iterator[Bound]:
    """Yield the last key of each chunk except the last. A chunk has about `rows` rows, however sparse the keys are.

    Raises:
        MySQLError: from the driver.
        DataError: see walk_bounds.
    """
    last = index.last_key()
    if last is None:
        return
    slices = _divided(index, index.estimate, _Part(None, last, size.rows), _SLICES)
    found = max(size.rows, sum(part.rows for part in slices))

    def estimate(low: Bound | None, high: Bound) -> int:
        # InnoDB doubles the estimates of ranges of many pages.
        return -(-index.estimate(low, high) * size.rows // found)

    parts = (part._replace(rows=-(-part.rows * size.rows // found)) for part in slices)
    yield from _joined((small for part in parts for small in _small_parts(index, estimate, part, rows)), rows)


def _joined(parts: Iterator[_Part], rows: int) -> Iterator[Bound]:
    """Yield the ends of all chunks but the last: consecutive parts with about `rows` rows, at most half more."""
    end: Bound | None = None
    held = 0
    for part in parts:
        if end is not None and held + part.rows > _most(rows):
            yield end
            held = 0
        end, held = part.high, held + part.rows


def _most(rows: int) -> int:
    return rows + rows // 2


def _small_parts(index: KeyIndex, estimate: _Estimate, whole: _Part, rows: int) -> Iterator[_Part]:
    """Yield parts of the range that have about `rows` rows or fewer, in order.

    A part that cannot be divided by values is walked.
    """
    waiting = [(whole, 0)]
    while waiting:
        part, divisions = waiting.pop()
        if part.rows <= _most(rows):
            yield part
            continue
        parts = [part]
        if divisions < _FEW_DIVISIONS:
            parts = _divided(index, estimate, part, max(2, -(-part.rows // rows)))
        if len(parts) == 1:
            yield from _walked(index, parts[0], rows)
            continue
        waiting += [(small, divisions + 1 if small.has_most_of(part) else 0) for small in reversed(parts)]


def _divided(index: KeyIndex, estimate: _Estimate, whole: _Part, parts: int) -> list[_Part]:
    """Divide a range by values between its first and its last key; return one part if no key is at or before them."""
    first = index.key_at(whole.low, whole.high, 0)
    if first is None or first == whole.high:
        return [whole._replace(rows=0 if first is None else 1)]
    place = shared_columns(first, whole.high)
    column = index.plan.definition.column(index.plan.key[place].name)
    options = []
    for values in values_between(column, first[place], whole.high[place], parts):
        option = list(_cut(index, estimate, whole, first, [(place, value) for value in values]))
        if not any(part.has_most_of(whole) for part in option):
            return option
        options.append(option)
    return min(options, key=_largest, default=[whole])


def _largest(parts: list[_Part]) -> int:
    return max(part.rows for part in parts)


def _cut(
    index: KeyIndex, estimate: _Estimate, whole: _Part, first: Bound, places: list[tuple[int, str]]
) -> Iterator[_Part]:
    """Cut a range after the last key up to each value of a column. Values in another order than the keys cut less."""
    low, start = whole.low, first
    for place in places:
        key = index.last_key(start, whole.high, place)
        if key is not None and key != whole.high:
            yield _Part(low, key, estimate(low, key))
            low = start = key
    yield _Part(low, whole.high, estimate(low, whole.high))


def _walked(index: KeyIndex, part: _Part, rows: int) -> Iterator[_Part]:
    low = part.low
    for bound in walk_bounds(index, rows, part.low, part.high):
        yield _Part(low, bound, rows)
        low = bound
    if low != part.high:
        yield _Part(low, part.high, rows)
