"""Ranges of a key are divided until an estimate says that they are small enough."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from random import Random
from typing import cast

import pytest

from loader.initial_load.bounds.key_index import KeyIndex
from loader.initial_load.bounds.range_division import estimate_bounds
from loader.initial_load.documents import Bound, KeyColumn
from loader.model.table import Column, TableName, TableSchema
from loader.source.table_sizes import TableSize
from tests.unit.initial_load.test_keys import plan

ROWS = 1000
MOST = ROWS + ROWS // 2
LARGEST = 2**64 - 1
COLUMNS = (Column("a", "bigint"), Column("b", "bigint"))


class Keys:
    """The index of a table with keys of integers, whose estimates are wrong by a factor. It counts what it is asked."""

    def __init__(self, keys: list[tuple[int, ...]], factor: float = 1) -> None:
        self.keys = sorted(keys)
        self.asked = 0
        self._factor = factor
        names = tuple(column.name for column in COLUMNS[: len(keys[0]) if keys else 1])
        schema = TableSchema(TableName("s", "t"), COLUMNS, names)
        key = tuple(KeyColumn(name=name) for name in names)
        self.plan = plan("i").model_copy(update={"table_schema": schema.as_dict(), "key": key})

    def estimate(self, low: Bound | None, high: Bound | None) -> int:
        first, end = self._range(low, high)
        return max(1, round((end - first) * self._factor))

    def key_at(self, low: Bound | None, high: Bound | None, offset: int) -> Bound | None:
        first, end = self._range(low, high)
        return self._bound(first + offset) if first + offset < end else None

    def last_key(
        self, low: Bound | None = None, high: Bound | None = None, up_to: tuple[int, str] | None = None
    ) -> Bound | None:
        first, end = self._range(low, high)
        if up_to and first < end:
            place, text = up_to
            end = min(end, bisect_right(self.keys, (*self.keys[first][:place], int(text), LARGEST)))
        return self._bound(end - 1) if first < end else None

    def rows_until(self, bound: Bound) -> int:
        return bisect_right(self.keys, tuple(map(int, bound)))

    def _range(self, low: Bound | None, high: Bound | None) -> tuple[int, int]:
        self.asked += 1
        return self.rows_until(low) if low else 0, self.rows_until(high) if high else len(self.keys)

    def _bound(self, at: int) -> Bound:
        return tuple(map(str, self.keys[at]))


def keys_of(shape: str) -> list[tuple[int, ...]]:
    dice = Random(shape)
    shapes: dict[str, list[int] | list[tuple[int, int]]] = {
        "dense": list(range(50_000)),
        "every tenth": list(range(-300_000, 300_000, 10)),
        "two clusters at the ends": [*range(20_000), *range(LARGEST - 20_000, LARGEST + 1)],
        "one outlier": [*range(30_000), LARGEST],
        "growing gaps": [*range(3000), *(3000 + round(1.002**n) for n in range(20_000))],
        "at random": [dice.randrange(LARGEST) for _ in range(30_000)],
        "one": [7],
        "few": list(range(0, 900, 3)),
        "one large tenant": [*((1, n) for n in range(100)), *((2, n * n) for n in range(30_000)), (3, 1)],
        "many tenants": [(n % 313 * 1000, n) for n in range(40_000)],
    }
    return list({key if isinstance(key, tuple) else (key,) for key in shapes[shape]})


SHAPES = [
    "dense", "every tenth", "two clusters at the ends", "one outlier", "growing gaps", "at random", "one", "few",
    "one large tenant", "many tenants",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [1, 0.5, 1.9])
def test_each_chunk_has_about_its_rows(shape: str, factor: float) -> None:
    keys = Keys(keys_of(shape), factor)
    bounds = list(estimate_bounds(cast("KeyIndex", keys), TableSize(len(keys.keys), 0), ROWS))
    places = [0, *map(keys.rows_until, bounds), len(keys.keys)]
    assert places == sorted(set(places))
    sizes = [end - start for start, end in pairwise(places)]
    assert max(sizes) <= MOST / min(factor, 1)
    assert len(sizes) <= 3 * max(factor, 1) * len(keys.keys) / MOST + 1
    assert keys.asked < 100 * (len(sizes) + 10)


def test_keys_whose_estimates_stay_too_high_are_walked() -> None:
    keys = Keys([(number,) for number in range(1, 20_001)])
    keys.estimate = lambda low, high: 10**9  # type: ignore[method-assign]
    bounds = list(estimate_bounds(cast("KeyIndex", keys), TableSize(20_000, 0), ROWS))
    sizes = [end - start for start, end in pairwise([0, *map(keys.rows_until, bounds), 20_000])]
    assert max(sizes) <= MOST


def test_estimates_are_made_to_add_up_to_the_rows_of_the_table() -> None:
    sizes = []
    for factor in (1, 2):
        keys = Keys([(number,) for number in range(16_000)], factor)
        sizes.append(len(list(estimate_bounds(cast("KeyIndex", keys), TableSize(16_000, 0), ROWS))))
    assert sizes == [sizes[0]] * 2


def test_an_empty_table_has_no_bounds() -> None:
    assert list(estimate_bounds(cast("KeyIndex", Keys([])), TableSize(0, 0), ROWS)) == []
