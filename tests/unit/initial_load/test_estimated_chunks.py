"""Ranges of an integer key are divided until an estimate says that they are small enough."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from random import Random

import pytest

from loader.initial_load.estimated_chunks import calibrated, cut

ROWS = 1000
MOST = ROWS + ROWS // 2
LARGEST = 2**64 - 1


def keys_of(shape: str) -> list[int]:
    dice = Random(shape)
    shapes = {
        "dense": list(range(50_000)),
        "every tenth": list(range(-300_000, 300_000, 10)),
        "two clusters at the ends": [*range(20_000), *range(LARGEST - 20_000, LARGEST + 1)],
        "growing gaps": [*range(3000), *(3000 + round(1.002**n) for n in range(20_000))],
        "at random": [dice.randrange(LARGEST) for _ in range(30_000)],
        "one": [7],
        "few": list(range(0, 900, 3)),
    }
    return sorted(set(shapes[shape]))


SHAPES = ["dense", "every tenth", "two clusters at the ends", "growing gaps", "at random", "one", "few"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("error", [1, 0.5, 1.9])
def test_each_chunk_has_about_its_rows(shape: str, error: float) -> None:
    keys, asked = keys_of(shape), list[tuple[int, int]]()

    def estimate(low: int, high: int) -> int:
        asked.append((low, high))
        return max(1, round((bisect_right(keys, high) - bisect_left(keys, low)) * error))

    bounds = list(cut(estimate, keys[0], keys[-1], ROWS))
    assert bounds == sorted(set(bounds))
    assert all(keys[0] <= bound < keys[-1] for bound in bounds)
    places = [0, *(bisect_right(keys, bound) for bound in bounds), len(keys)]
    sizes = [end - start for start, end in pairwise(places)]
    assert max(sizes) <= MOST / min(error, 1)
    assert len(sizes) <= 3 * error * len(keys) / MOST + 1
    assert len(asked) < 50 * (len(sizes) + 10)


def test_estimates_that_stay_too_high_come_to_an_end() -> None:
    assert list(cut(lambda low, high: 10**9, 1, 20_000, ROWS)) == list(range(1000, 20_000, 1000))


def test_estimates_add_up_to_the_rows_of_the_table() -> None:
    doubled = calibrated(lambda low, high: 2 * (high - low + 1), 1, 16_000, 16_000)
    assert [doubled(1, 16_000), doubled(5, 104), doubled(7, 7)] == [16_000, 100, 1]
    halved = calibrated(lambda low, high: (high - low + 1) // 2, 1, 16_000, 16_000)
    assert halved(1, 1000) == 500
