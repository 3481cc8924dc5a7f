"""Nothing of a table is applied over a place where rows of it are not staged, until they are, or it is loaded anew."""

from __future__ import annotations

from datetime import timedelta

import pytest

from loader.materialise.plan.interval_chain import Chain
from loader.materialise.replay.table_replay import ReplayedPart, replay_table
from loader.materialise.spec import MaterialiseResult
from loader.model.table import Column, TableName
from loader.pipeline import intervals, purge
from loader.pipeline.upkeep.quarantine_release import release
from loader.staging.chain import PlanChain
from loader.staging.documents import Barrier, IncompleteTable, Manifest
from loader.staging.published import Published
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import GENERATION, SOURCE, Change, number, position, table
from tests.unit.pipeline.site import settings_of

pytestmark = pytest.mark.integration

COLUMNS = [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")]
ORDERS, ITEMS, KEYLESS = table("orders", COLUMNS, ["id"]), table("items", COLUMNS, ["id"]), table("bag", COLUMNS, [])
P0 = position(1, 1000)
WHY = "lost: ALTER TABLE shop.orders ..."


@pytest.fixture
def three(lake: Lake) -> Lake:
    """Three loaded tables with a row each, and an interval that has records of all and lacks some of two."""
    lake.staging.interval(position(1, 4), P0)
    keys = [lake.staging.load(schema, [(1, "one")], P0) for schema in (ORDERS, ITEMS, KEYLESS)]
    assert lake.loaded(*keys).exit_code == 0
    staged(lake, 1000, left_out=(left(ORDERS.name, 1500), left(KEYLESS.name, 1500)))
    return lake


def insert(key: int) -> Change:
    return Change("I", number(1, key), 5, (key, "new"))


def left(name: TableName, at: int, until: int = 0) -> IncompleteTable:
    place, last = position(1, at - 50), number(1, until) if until else 0
    return IncompleteTable(
        table=str(name), seqno=number(1, at), last_seqno=last, position=place, at=place, what="not known", why=WHY
    )


def staged(
    lake: Lake, start: int, left_out: tuple[IncompleteTable, ...] = (), barriers: tuple[Barrier, ...] = ()
) -> Manifest:
    """An interval with a record of each table near its start and one near its end."""
    records = [(schema, [insert(start + 100), insert(start + 900)]) for schema in (ORDERS, ITEMS, KEYLESS)]
    return lake.staging.interval(position(1, start), position(1, start + 1000), records, barriers, 1, left_out=left_out)


def statuses(result: MaterialiseResult) -> dict[str, str]:
    return {one.table.removeprefix("shop."): one.status for one in result.tables}


def ids(lake: Lake, name: str) -> set[int]:
    return {row.id for row in lake.sql(f"SELECT id FROM lake.shop.{name}")}


def settings(lake: Lake):
    return settings_of(lake.folder, lake.staging.store.root)


STOPPED = {"orders": "quarantined", "items": "applied", "bag": "quarantined"}


def test_tables_stop_right_before_what_is_missing_and_stay_there(three: Lake) -> None:
    first = three.merged()
    assert (statuses(first), first.exit_code) == (STOPPED, 4)
    record = Published.read(three.staging.store.get(first.published), first.published)
    assert record.behind == {"shop.orders": number(1, 1499), "shop.bag": number(1, 1499)}
    assert (ids(three, "orders"), ids(three, "bag"), ids(three, "items")) == ({1, 1100}, {1, 1100}, {1, 1100, 1900})
    error = next(one.error for one in first.tables if one.table == "shop.orders")
    assert error is not None
    assert (error["why"], error["where"]["table"], error["where"]["interval"]) == (
        WHY,
        "shop.orders",
        str(number(1, 1000)),
    )
    assert f"loader schema set shop.orders --at {position(1, 1450)} --file FILE" in error["hint"]
    assert f"loader extract --interval {number(1, 1000)};" in error["hint"]
    assert "loader initial-load --table shop.orders --again" in error["hint"]
    staged(three, 2000)  # where they are told again
    second = three.merged()
    assert statuses(second) == STOPPED
    assert len(release(settings(three))) == 2
    third = three.merged()
    assert statuses(third) == STOPPED | {"items": "already"}
    assert (ids(three, "orders"), ids(three, "bag")) == ({1, 1100}, {1, 1100})
    assert [(one.state, one.left_out) for one in intervals(settings(three))[1:]] == [
        ("staged", ("shop.orders", "shop.bag")), ("staged", ()),
    ]  # fmt: skip
    assert purge(settings(three), timedelta(0)) == []


def test_a_newer_load_brings_them_over_it_and_a_replay_begins_there(three: Lake) -> None:
    three.merged()
    staged(three, 2000)
    three.loaded(three.staging.load(ORDERS, [(7, "read")], position(1, 2500)))
    result = three.merged()
    assert statuses(result) == {"orders": "applied", "items": "applied", "bag": "quarantined"}
    assert (ids(three, "orders"), ids(three, "bag")) == ({7, 2900}, {1, 1100})
    chain = Chain(three.staging.store, SOURCE, GENERATION)
    found = [
        replay_table(three.warehouse, chain, ORDERS.name, ReplayedPart(number(1, start)), publish=False)
        for start in (1000, 2500)
    ]
    assert [(one.status, one.note) for one in found] == [
        ("same", f"compared from {position(1, 2500)} on, where it was loaded"), ("same", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(("until", "status"), [(1550, "applied"), (1700, "quarantined"), (0, "quarantined")])
def test_a_load_between_missing_rows_is_followed_only_if_none_is_after_it(lake: Lake, until: int, status: str) -> None:
    """An interval of an older version does not say where its last missing row is: it may be the last row."""
    lake.staging.interval(position(1, 4), P0)
    staged(lake, 1000, left_out=(left(ORDERS.name, 1500, until),))
    lake.loaded(*(lake.staging.load(schema, [(7, "read")], position(1, 1600)) for schema in (ORDERS, ITEMS, KEYLESS)))
    assert statuses(lake.merged()) == {"orders": status, "items": "applied", "bag": "applied"}
    assert ids(lake, "orders") == ({7, 1900} if status == "applied" else {7})
    assert statuses(lake.merged())["orders"] == ("already" if status == "applied" else status)


def test_what_is_filled_is_applied_once(three: Lake) -> None:
    three.merged()
    first = PlanChain(three.staging.store, SOURCE).extracted_manifest(GENERATION, number(1, 1000))
    assert first is not None
    folder = f"{SOURCE}/{GENERATION}/{first.start_seqno:020d}"
    for schema in (ORDERS, KEYLESS):
        file = three.staging.part(
            folder, schema, [insert(key) for key in (1100, 1500, 1900)], attempt=f"f{schema.name.table}"
        )
        filled = first.model_copy(
            update={"files": (file,), "schemas": {schema.schema_id: schema.as_dict()}, "left_out": ()}
        )
        PlanChain(three.staging.store, SOURCE).publish_backfill(schema.name, filled)
    assert len(release(settings(three))) == 2
    result = three.merged()
    assert (statuses(result), result.exit_code) == ({"orders": "applied", "items": "already", "bag": "applied"}, 0)
    for name in ("orders", "bag"):
        assert three.bag(TableName("shop", name), "id") == {(key,): 1 for key in (1, 1100, 1500, 1900)}
    assert [(one.state, one.left_out) for one in intervals(settings(three))[1:]] == [("applied", ())]
    removed = purge(settings(three), timedelta(0))
    assert sorted(one.attempt for one in removed) == ["a1", "fbag", "forders"]
    assert not any(info.key.endswith(".csv") for info in three.staging.store.list(folder))


def test_a_table_that_nothing_is_staged_of_is_named(lake: Lake) -> None:
    """It was never loaded, or is as new as its lost statement."""
    lake.staging.interval(position(1, 4), P0)
    assert lake.loaded(lake.staging.load(ITEMS, [(1, "one")], P0)).exit_code == 0
    made = Barrier(
        seqno=number(1, 1400), position=position(1, 1350), statement="CREATE TABLE new LIKE unknown", database="shop",
        sql_mode=0, mariadb=False, tables=("shop.new",),
    )  # fmt: skip
    left_out = (left(TableName("shop", "new"), 1500), left(TableName("shop", "never"), 1600))
    lake.staging.interval(P0, position(1, 2000), [(ITEMS, [insert(1100)])], (made,), left_out=left_out)
    for _ in range(2):
        result = lake.merged()
        assert statuses(result) | {"items": ""} == {"items": "", "new": "quarantined", "never": "quarantined"}
        errors = {one.table: one.error["what"] for one in result.tables if one.error}
        assert errors["shop.new"].startswith("rows of the table could not be staged")
        assert errors["shop.never"].endswith("it was never loaded")


def test_one_that_takes_the_name_waits(three: Lake) -> None:
    renamed = Barrier(
        seqno=number(1, 2500), position=position(1, 2450), statement="RENAME TABLE items TO gone, orders TO items",
        database="shop", sql_mode=0, mariadb=False, tables=("shop.items", "shop.gone", "shop.orders"),
    )  # fmt: skip
    three.staging.interval(position(1, 2000), position(1, 3000), [(ITEMS, [insert(2900)])], (renamed,))
    result = three.merged()
    assert statuses(result) == {
        "orders": "quarantined",
        "items": "quarantined",
        "bag": "quarantined",
        "gone": "applied",
    }
    assert (ids(three, "orders"), ids(three, "items")) == ({1, 1100}, {1, 1100, 1900})
