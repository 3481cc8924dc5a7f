"""Which snapshot of a table is compared, although other runs applied later log meanwhile."""

from __future__ import annotations

import pytest

from loader.errors import DataError, RetryableError
from loader.model.table import Column, TableName
from loader.verify.verify import find_snapshot
from loader.verify.warehouse_rows import snapshot_rows
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, fold, number, position, table

pytestmark = pytest.mark.integration

ORDERS = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
ROWS = [(key, "loaded") for key in range(20)]
STOPS = (2000, 3000, 4000)
CHANGES = {
    stop: [
        *(Change("U", number(1, stop - 500), key, (key, f"at {stop}")) for key in range(3)),
        Change("D", number(1, stop - 400), 9, (stop // 1000, "")),
    ]
    for stop in STOPS
}


@pytest.fixture
def applied(lake: Lake) -> Lake:
    """A table that was merged to each stop, with a commit of another tool after the first merge."""
    lake.one(lake.loaded(lake.staging.load(ORDERS, ROWS, position(1, 1000))))
    for stop in STOPS:
        lake.staging.interval(position(1, stop - 1000), position(1, stop), [(ORDERS, CHANGES[stop])])
        assert lake.one(lake.merged()).status == "applied"
        if stop == STOPS[0]:
            lake.sql("INSERT INTO lake.shop.orders (id, name) VALUES (99, 'of others')")
    return lake


def rows(lake: Lake, seqno: int, reached: int) -> dict[int, str]:
    snapshot = find_snapshot(lake.warehouse, ORDERS.name, seqno, reached)
    return {row.id: row.name for row in snapshot_rows(lake.warehouse, ORDERS, snapshot).collect()}


def expected(last: int) -> dict[int, str]:
    changes = [change for stop in STOPS if stop <= last for change in CHANGES[stop]]
    others = {99: "of others"} if last >= STOPS[0] else {}
    return dict(fold(ORDERS, ROWS, 0, changes).values()) | others


def test_the_rows_at_a_position_are_found(applied: Lake) -> None:
    for last in (1000, *STOPS):
        assert rows(applied, number(1, last), number(1, last)) == expected(last)
        between = number(1, last + 100)
        assert rows(applied, between, number(1, last)) == expected(last)  # the log does not change the table there
    with pytest.raises(RetryableError, match="has no snapshot of the table at the position") as refused:
        find_snapshot(applied.warehouse, ORDERS.name, number(1, 2500), number(1, 2500))
    assert refused.value.where["position"] == position(1, 3000)

    applied.sql("CALL lake.system.expire_snapshots(table => 'shop.orders', older_than => now(), retain_last => 1)")
    assert rows(applied, number(1, 4000), number(1, 4000)) == expected(4000)
    with pytest.raises(RetryableError, match="has no snapshot of the table at the position"):
        find_snapshot(applied.warehouse, ORDERS.name, number(1, 3000), number(1, 3000))


def test_a_table_that_was_rolled_back_meanwhile(applied: Lake) -> None:
    first = list(applied.metadata(ORDERS).ancestry(applied.metadata(ORDERS).head))[-1]
    applied.sql(f"CALL lake.system.rollback_to_snapshot('shop.orders', {first.id})")
    with pytest.raises(RetryableError, match="at an earlier position than the run") as refused:
        find_snapshot(applied.warehouse, ORDERS.name, number(1, 4000), number(1, 4000))
    assert refused.value.where["position"] == position(1, 1000)


def test_a_table_that_is_not_there_was_never_loaded(lake: Lake) -> None:
    with pytest.raises(DataError, match="the table was never loaded"):
        find_snapshot(lake.warehouse, TableName("shop", "absent"), number(1, 1000), 0)
    lake.warehouse.create(ORDERS, "shop", "g1")  # a load that was killed
    with pytest.raises(DataError, match="the table was never loaded"):
        find_snapshot(lake.warehouse, ORDERS.name, number(1, 1000), 0)
