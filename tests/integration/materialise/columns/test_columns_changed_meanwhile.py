"""Columns that another tool drops or renames in the warehouse while rows of the table are being written."""

from __future__ import annotations

from collections import Counter

import pytest

from loader.materialise.iceberg import publication
from loader.materialise.rules import TableRule
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

ID, A, B, C = (Column(name, "int") for name in ("id", "a", "b", "c"))
BEFORE, AFTER = table("orders", [ID, A, B], ["id"]), table("orders", [ID, A, B, C], ["id"])
P0, P1, P2 = position(1, 1000), position(1, 2000), position(1, 3000)
DROPPED = ["DROP COLUMN a", "ADD COLUMN a int"]
SWAPPED = ["RENAME COLUMN a TO x", "RENAME COLUMN b TO a", "RENAME COLUMN x TO b"]


def meanwhile(monkeypatch: pytest.MonkeyPatch, lake: Lake, actions: list[str], table: str = "orders") -> None:
    """Change columns right before the next publication of rows."""
    original, left = publication.swap_metadata, list(actions)

    def swap(*arguments, **named):
        while left:
            lake.sql(f"ALTER TABLE lake.shop.{table} {left.pop(0)}")
        return original(*arguments, **named)

    monkeypatch.setattr(publication, "swap_metadata", swap)


@pytest.mark.parametrize("actions", [DROPPED, SWAPPED])
def test_a_table_is_loaded_again(lake: Lake, monkeypatch: pytest.MonkeyPatch, actions: list[str]) -> None:
    lake.loaded(lake.staging.load(BEFORE, [(1, 10, 20)], P0))
    meanwhile(monkeypatch, lake, actions)
    lake.one(lake.loaded(lake.staging.load(BEFORE, [(1, 11, 21)], P1)))
    assert lake.rows(BEFORE) == {(1,): (1, 11, 21)}


@pytest.mark.parametrize("actions", [DROPPED, SWAPPED])
def test_a_merge_that_adds_a_column(lake: Lake, monkeypatch: pytest.MonkeyPatch, actions: list[str]) -> None:
    lake.loaded(lake.staging.load(BEFORE, [(1, 10, 20), (2, 30, 40)], P0))
    meanwhile(monkeypatch, lake, actions)
    records = [Change("U", number(1, 1200), 5, (1, 11, 21, 31))]
    lake.staging.interval(P0, P1, [(AFTER, records)], [barrier(1100, "ALTER TABLE orders ADD c INT", "orders")])
    (found,) = lake.merged().tables
    assert found.error
    assert "columns of the warehouse's table" in found.error["what"]


@pytest.mark.parametrize("actions", [DROPPED, SWAPPED])
def test_a_history_is_not_mended_by_a_load(lake: Lake, actions: list[str]) -> None:
    lake.rules = (TableRule(tables=("shop.orders",), mode="history"),)
    lake.loaded(lake.staging.load(BEFORE, [(1, 10, 20)], P0))
    for action in actions:
        lake.sql(f"ALTER TABLE lake.shop.orders {action}")
    (found,) = lake.loaded(lake.staging.load(BEFORE, [(1, 11, 21)], P1)).tables
    assert found.error
    assert found.error["hint"].startswith("drop it in the warehouse, then: loader initial-load")
    lake.sql("DROP TABLE lake.shop.orders")
    lake.one(lake.loaded(lake.staging.load(BEFORE, [(1, 12, 22)], P2)))
    assert lake.bag(BEFORE.name, "id", "a", "b") == Counter({(1, 12, 22): 1})
