"""RENAME TABLE: a table takes over the rows and columns of the one whose name it gets, exactly as they were then."""

from __future__ import annotations

from typing import Any

import pytest

from loader.materialise.iceberg.branch import Branch
from loader.model.table import Column, TableSchema
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

P0 = position(1, 1000)
ID, NAME, SIZE = Column("id", "int"), Column("name", "varchar", charset="utf8mb4"), Column("size", "int")


def schema(name: str, *columns: Column) -> TableSchema:
    return table(name, columns, ("id",))


def change(op: str, offset: int, *row: Any) -> Change:
    return Change(op, number(1, offset), 5, row)


def rows(lake: Lake, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    frame = lake.sql(f"SELECT * EXCEPT (_seqno, _committed_at) FROM lake.shop.`{name}` ORDER BY id")
    return (list(frame[0].__fields__) if frame else []), [tuple(row) for row in frame]


ORDERS, ITEMS = schema("orders", ID, NAME), schema("items", ID, SIZE)
GHOST = schema("_orders_gho", ID, NAME, SIZE)


@pytest.fixture
def shop(lake: Lake) -> Lake:
    """Two tables, then a copy of one with another column that takes its name, then both swap theirs."""
    keys = [
        lake.staging.load(ORDERS, [(1, "one"), (2, "two")], P0),
        lake.staging.load(ITEMS, [(7, 70)], P0),
    ]
    lake.loaded(*keys)
    swapped_orders, swapped_items = schema("orders", ID, SIZE), schema("items", ID, NAME, SIZE)
    lake.staging.interval(
        P0,
        position(1, 3000),
        [
            (ORDERS, [change("U", 1100, 1, "uno"), change("I", 1350, 3, "three")]),
            (
                GHOST,
                [
                    change("I", 1200, 1, "uno", None),
                    change("I", 1210, 2, "two", None),
                    change("I", 1360, 3, "three", None),
                ],
            ),
            (schema("orders", ID, NAME, SIZE), [change("U", 1500, 2, "two", 22)]),
            (ITEMS, [change("I", 1510, 8, 80)]),
            (swapped_orders, [change("U", 1700, 7, 71)]),
            (swapped_items, [change("D", 1710, 1, "uno", None)]),
        ],
        [
            barrier(1150, "CREATE TABLE _orders_gho LIKE orders", "_orders_gho"),
            barrier(1160, "ALTER TABLE _orders_gho ADD size INT", "_orders_gho"),
            barrier(
                1400,
                "RENAME TABLE orders TO _orders_del, _orders_gho TO orders",
                "orders",
                "_orders_gho",
                "_orders_del",
            ),
            barrier(1600, "RENAME TABLE orders TO x, items TO orders, x TO items", "orders", "items", "x"),
        ],
    )
    return lake


def as_on_the_server(lake: Lake) -> bool:
    return (rows(lake, "orders"), rows(lake, "items"), rows(lake, "_orders_del")) == (
        (["id", "size"], [(7, 71), (8, 80)]),
        (["id", "name", "size"], [(2, "two", 22), (3, "three", None)]),
        (["id", "name"], [(1, "uno"), (2, "two"), (3, "three")]),
    )


def test_tables_take_each_others_rows_and_columns(shop: Lake) -> None:
    result = shop.merged()
    assert {one.table: one.error for one in result.tables if one.error} == {}
    assert as_on_the_server(shop)
    heads = {name: shop.metadata(schema(name).name).head for name in ("orders", "items", "_orders_del")}
    assert {one.status for one in shop.merged().tables} <= {"already", "unchanged"}
    assert {name: shop.metadata(schema(name).name).head for name in heads} == heads


@pytest.mark.parametrize("publications", range(1, 7) if IN_SWEEP else [4])
def test_a_run_that_ends_after_any_publication_is_finished_by_the_next(
    shop: Lake, monkeypatch: pytest.MonkeyPatch, publications: int
) -> None:
    original, left = Branch.publish, [publications]

    def publish(*arguments: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Branch, "publish", publish)
        with pytest.raises(KeyboardInterrupt):
            shop.merged()
    result = shop.merged()
    assert {one.table: one.error for one in result.tables if one.error} == {}
    assert as_on_the_server(shop)


def test_a_table_from_outside_stops_the_one_whose_name_it_gets(lake: Lake) -> None:
    lake.loaded(lake.staging.load(ORDERS, [(1, "one")], P0), lake.staging.load(ITEMS, [(7, 70)], P0))
    renamed = barrier(1400, "RENAME TABLE orders TO tmp.old, tmp.new TO orders", "orders")
    lake.staging.interval(P0, position(1, 3000), [(ITEMS, [change("I", 1510, 8, 80)])], [renamed])
    items, orders = lake.merged().tables
    assert (items.status, orders.status) == ("applied", "quarantined")
    assert orders.error is not None
    assert (
        orders.error["what"]
        == "table tmp.new was renamed to the name of a captured table, but it is not in the warehouse"
    )
    assert rows(lake, "orders")[1] == [(1, "one")]
