"""A table that does not reach its target is an error of its own, whatever its plan says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loader.errors import LoaderError
from loader.materialise.merge.table_merge import merge_table
from loader.materialise.merge.table_results import idle_result
from loader.materialise.spec import CatalogSettings, TableResult
from loader.model.table import TableName

ORDERS = TableName("shop", "orders")


class Planner:
    """Says the same of a table each time, and counts how often it was asked."""

    def __init__(self, folder: Path, said: TableResult) -> None:
        self.warehouse = SimpleNamespace(
            catalog=CatalogSettings(type="hadoop", warehouse=str(folder)), metadata=lambda _: None
        )
        self.chain = None
        self.said, self.asked = said, 0

    def plan(self, *_: object, **__: object) -> TableResult:
        self.asked += 1
        return self.said


def merged(planner: Any) -> TableResult:
    return merge_table(planner, ORDERS, 100)


@pytest.mark.parametrize("status", ["unchanged", "already"])
@pytest.mark.parametrize("complete", [None, 0, 99])
def test_a_table_short_of_its_target_is_not_reported_as_done(status: Any, complete: int | None, tmp_path: Path) -> None:
    planner = Planner(tmp_path, TableResult(table="shop.orders", status=status, complete_through=complete))
    with pytest.raises(LoaderError) as raised:
        merged(planner)
    error = raised.value
    assert str(error).startswith("the table does not advance to its target, and another run would not change that")
    assert error.why == f"an attempt left it complete up to seqno {complete or 0}"
    assert error.hint.startswith("loader initial-load --table shop.orders --again")
    assert error.where == {"table": "shop.orders", "seqno": "100"}
    assert not error.retryable
    assert planner.asked == 1


def test_a_commit_that_advances_nothing_ends_the_merge(tmp_path: Path) -> None:
    planner = Planner(tmp_path, TableResult(table="shop.orders", status="applied", complete_through=50))
    with pytest.raises(LoaderError, match="does not advance"):
        merged(planner)
    assert planner.asked == 2  # the first commit advanced the table, the second one did not


def test_a_table_at_its_target_is_done(tmp_path: Path) -> None:
    done = merged(Planner(tmp_path, idle_result(ORDERS, None, "unchanged", 100)))
    assert (done.status, done.complete_through) == ("unchanged", 100)
