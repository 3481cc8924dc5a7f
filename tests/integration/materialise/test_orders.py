"""Runs of three intervals in every order, each twice: the warehouse has what its furthest run means, written once."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, fold, number, position, table

pytestmark = pytest.mark.integration

ORDERS = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
PLACES = [100, 200, 300, 400]
LOADED = [(1, "one"), (2, "two"), (3, "three")]


def changes(interval: int) -> list[Change]:
    """An insert, an update and the delete of what the interval before inserted."""
    at = number(1, PLACES[interval] + 50)
    return [
        Change("I", at, 1, (10 + interval, f"new {interval}")),
        Change("U", at, 2, (1, f"changed {interval}")),
        Change("D", at, 3, (9 + interval, "")),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_runs_in_any_order_and_again(lake: Lake, seed: int) -> None:
    first = list(list(permutations(range(3)))[seed])
    order = [*first, *random.Random(seed).sample(first, 3)]
    assert lake.loaded(lake.staging.load(ORDERS, LOADED, position(1, PLACES[0]))).exit_code == 0
    for interval in range(3):
        lake.staging.interval(
            position(1, PLACES[interval]), position(1, PLACES[interval + 1]), [(ORDERS, changes(interval))]
        )
    furthest = -1
    for interval in order:
        head = lake.metadata(ORDERS).head
        result = lake.one(lake.merged(number(1, PLACES[interval + 1])))
        assert result.status == ("applied" if interval > furthest else "already")
        assert (lake.metadata(ORDERS).head == head) is (interval <= furthest)
        furthest = max(furthest, interval)
        records = [change for done in range(furthest + 1) for change in changes(done)]
        assert lake.rows(ORDERS) == fold(ORDERS, LOADED, 0, records)
    assert furthest == 2
