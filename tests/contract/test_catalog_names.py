"""Names of tables and columns on every kind of catalog: odd, renamed, dropped, and alike to the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loader.materialise.quoting import catalog_name
from loader.model.table import Column, TableName, TableSchema
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table
from tests.support.catalogs import CATALOGS, SERVERS, CatalogServer, table_from_outside
from tests.support.spark import NewLake
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

ID, NAME, SIZE = Column("id", "int"), Column("name", "varchar", charset="utf8mb4"), Column("size", "int")
ODD_TABLES = ["orders.bak", "Order Items", "ordérs 2", "a$x", "_x2e", "日本", "it's`so", "select"]
ODD_COLUMNS = ["a.b", "Größe €", "UPPER", "it's`so", "日本", "order", "x y"]
P0 = position(1, 1000)


@pytest.fixture(params=CATALOGS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def outside(lake: Lake, server: CatalogServer | None, name: TableName, *columns: str) -> list[tuple[Any, ...]]:
    """The rows as another reader finds them."""
    schema, mapped = (catalog_name(part, lake.catalog.type) for part in (name.schema, name.table))
    found = table_from_outside(server, lake.catalog, schema, mapped).scan().to_arrow().to_pylist()
    return sorted(tuple(row[column] for column in columns) for row in found)


def test_odd_names_are_tables_like_all_others(kind: str, new_lake: NewLake, request: pytest.FixtureRequest) -> None:
    lake = new_lake(kind)
    columns = [ID, *(Column(column, "int") for column in ODD_COLUMNS)]
    schemas = [table(name, columns, ["id"]) for name in (ODD_TABLES if IN_SWEEP else ODD_TABLES[:2])]
    rows = [(key, *range(key, key + len(ODD_COLUMNS))) for key in range(5)]
    assert lake.loaded(*(lake.staging.load(schema, rows, P0) for schema in schemas)).exit_code == 0
    changed = (1, *(10 * value for value in range(len(ODD_COLUMNS))))
    updates = [(schema, [Change("U", number(1, 1100), 5, changed)]) for schema in schemas]
    lake.staging.interval(P0, position(1, 2000), updates)
    assert {one.status for one in lake.merged().tables} == {"applied"}
    assert {one.status for one in lake.merged().tables} == {"already"}
    wanted = [rows[0], changed, *rows[2:]]
    server = request.getfixturevalue(f"{kind}_catalog") if kind in SERVERS else None
    for schema in schemas:
        assert lake.rows(schema) == {(row[0],): row for row in wanted}
        if kind != "hdfs":  # for which PyIceberg would need libhdfs
            assert outside(lake, server, schema.name, "id", *ODD_COLUMNS) == wanted


def change(op: str, offset: int, *row: Any) -> Change:
    return Change(op, number(1, offset), 5, row)


ORDERS, ITEMS = table("orders", [ID, NAME], ["id"]), table("items", [ID, SIZE], ["id"])


def renamed(schema: TableSchema, name: str) -> TableSchema:
    return replace(schema, name=TableName("shop", name))


def test_tables_are_renamed_dropped_and_created_again(kind: str, new_lake: NewLake) -> None:
    lake = new_lake(kind)
    loads = [lake.staging.load(ORDERS, [(1, "one"), (2, "two")], P0), lake.staging.load(ITEMS, [(7, 70)], P0)]
    assert lake.loaded(*loads).exit_code == 0
    orders, items, old = renamed(ITEMS, "orders"), renamed(ORDERS, "items"), renamed(ORDERS, "old")
    lake.staging.interval(
        P0,
        position(1, 2000),
        [(ORDERS, [change("I", 1100, 3, "three")]), (orders, [change("I", 1300, 8, 80)])],
        [barrier(1200, "RENAME TABLE orders TO x, items TO orders, x TO items", "orders", "items", "x")],
    )
    assert lake.merged().exit_code == 0
    assert lake.rows(orders) == {(7,): (7, 70), (8,): (8, 80)}
    assert lake.rows(items) == {(1,): (1, "one"), (2,): (2, "two"), (3,): (3, "three")}
    lake.staging.interval(
        position(1, 2000),
        position(1, 3000),
        [(ITEMS, [change("I", 2300, 9, 90)])],
        [
            barrier(2100, "RENAME TABLE items TO old", "items", "old"),
            barrier(2150, "DROP TABLE orders", "orders"),
            barrier(2200, "CREATE TABLE items (id INT PRIMARY KEY, size INT)", "items"),
        ],
    )
    result = lake.merged()
    assert {one.table: one.error for one in result.tables if one.error} == {}
    assert lake.rows(ITEMS) == {(9,): (9, 90)}
    assert lake.rows(orders) == {(7,): (7, 70), (8,): (8, 80)}, "a dropped table keeps its rows"
    assert lake.rows(old) == {(1,): (1, "one"), (2,): (2, "two"), (3,): (3, "three")}
    assert {one.status for one in lake.merged().tables} <= {"already", "unchanged"}


@pytest.mark.sweep
def test_a_metastore_that_refuses_types_is_told_from_an_outage(new_lake: NewLake) -> None:
    lake = new_lake("strict_hive")
    assert lake.one(lake.loaded(lake.staging.load(ORDERS, [(1, "one")], P0))).status == "applied"
    altered = table("orders", [ID, SIZE], ["id"])
    lake.staging.interval(
        P0,
        position(1, 2000),
        [(altered, [change("I", 1200, 2, 20)])],
        [barrier(1100, "ALTER TABLE orders DROP name, ADD size INT", "orders")],
    )
    (refused,) = lake.merged().tables
    assert refused.error
    what = "the Hive Metastore refuses another type at the place of a column"
    assert (refused.error["what"], refused.error["retryable"]) == (what, False)
    assert lake.rows(ORDERS) == {(1,): (1, "one")}


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["hive", "loose_mysql"])
def test_a_table_that_the_catalog_takes_for_another_is_refused(kind: str, new_lake: NewLake) -> None:
    """Its rows would be mixed with those of the other table."""
    lake = new_lake(kind)
    alike = renamed(ORDERS, "Orders")
    assert lake.one(lake.loaded(lake.staging.load(ORDERS, [(1, "one")], P0))).status == "applied"
    (refused,) = lake.loaded(lake.staging.load(alike, [(2, "two")], P0)).tables
    assert refused.error
    assert (refused.status, refused.error["what"]) == ("failed", "the warehouse's table holds shop.orders")
    assert refused.error["retryable"] is False
    changes = [(ORDERS, [change("I", 1100, 3, "three")]), (alike, [change("I", 1200, 4, "four")])]
    lake.staging.interval(P0, position(1, 2000), changes)
    assert {one.table: one.status for one in lake.merged().tables} == {
        "shop.Orders": "failed",
        "shop.orders": "applied",
    }
    assert lake.rows(ORDERS) == {(1,): (1, "one"), (3,): (3, "three")}
