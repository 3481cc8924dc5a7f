"""A table that cannot go on stops itself alone, keeps what it needs to go on, and catches up once it is released."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from loader.errors import DataError, StagedDataError
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.jobs.snapshots_job import require_snapshots
from loader.materialise.merge import source_run
from loader.materialise.merge.carry_over import carry_over
from loader.materialise.merge.table_merge import merge_table
from loader.materialise.rules import TableRule
from loader.materialise.spec import MaterialiseResult
from loader.model.table import Column
from loader.pipeline import intervals, purge, snapshots_job, view
from loader.pipeline.upkeep.quarantine_release import quarantines_of, release
from loader.staging.documents import Barrier, Manifest, TableFilter
from loader.staging.published import Published
from tests.integration.materialise.killable import run_until
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table
from tests.unit.pipeline.site import settings_of

pytestmark = pytest.mark.integration

COLUMNS = [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")]
ORDERS, ITEMS = table("orders", COLUMNS, ["id"]), table("items", COLUMNS, ["id"])
P0 = position(1, 1000)


def insert(key: int) -> Change:
    return Change("I", number(1, key), 5, (key, "new"))


@pytest.fixture
def both(lake: Lake) -> Lake:
    """Two loaded tables with one row each, and an interval with a record for both."""
    lake.staging.interval(position(1, 4), P0)
    keys = [lake.staging.load(schema, [(1, "one")], P0) for schema in (ORDERS, ITEMS)]
    assert lake.loaded(*keys).exit_code == 0
    lake.first = staged(lake, 1000, ORDERS, ITEMS)
    return lake


def staged(lake: Lake, start: int, *tables) -> Manifest:
    records = [(schema, [insert(start + 100)]) for schema in tables]
    return lake.staging.interval(position(1, start), position(1, start + 1000), records)


def statuses(result: MaterialiseResult) -> dict[str, str]:
    return {one.table.removeprefix("shop."): one.status for one in result.tables}


def record(lake: Lake, result: MaterialiseResult) -> Published:
    return Published.read(lake.staging.store.get(result.published), result.published)


def settings(lake: Lake):
    return settings_of(lake.folder, lake.staging.store.root).model_copy(update={"catalog": lake.catalog})


def without_its_file(lake: Lake) -> tuple[Path, Path]:
    """The staged file of `orders` is taken away: where it is now, and where it was."""
    (file,) = lake.first.files_of(ORDERS.name)
    path = lake.staging.root / file.key
    return path.rename(lake.folder / "kept.csv"), path


def purged(lake: Lake) -> list[int]:
    """Where in the log file the intervals begin that are purged."""
    return [one.start_seqno % 10**6 for one in purge(settings(lake), timedelta(0))]


def test_the_others_go_on_and_it_catches_up_from_where_it_stands(both: Lake) -> None:
    kept, place = without_its_file(both)
    first = both.merged()
    assert (statuses(first), first.exit_code) == ({"items": "applied", "orders": "quarantined"}, 4)
    assert list(record(both, first).tables) == ["shop.items"]
    assert record(both, first).behind == {"shop.orders": number(1, 1000)}

    kept.rename(place)  # mended, and yet not attempted
    staged(both, 2000, ITEMS)
    staged(both, 3000, ORDERS, ITEMS)
    second = both.merged()
    assert (statuses(second), second.exit_code) == ({"items": "applied", "orders": "quarantined"}, 4)
    assert both.rows(ORDERS) == {(1,): (1, "one")}
    (stood,) = quarantines_of(settings(both)).all().values()
    assert (stood.applied, stood.stop, stood.error["what"]) == (P0, position(1, 2000), "a staged file is missing")
    for result in (first, second):
        error = next(one.error for one in result.tables if one.error)
        assert error["hint"].endswith(f"loader release shop.orders (quarantined since {stood.since:%F %T} UTC)")
    assert [(one.state, one.behind) for one in intervals(settings(both))[1:]] == [
        ("staged", ("shop.orders",)), ("applied", ("shop.orders",)), ("staged", ("shop.orders",)),
    ]  # fmt: skip

    assert purged(both) == [2000]
    assert release(settings(both), "shop.orders") == (stood,)
    assert purged(both) == []  # it still needs the others
    third = both.merged()
    assert (statuses(third), third.exit_code) == ({"items": "already", "orders": "applied"}, 0)
    assert set(both.rows(ORDERS)) == {(1,), (1100,), (3100,)}
    # The record of that interval, which others may have read without it, has it now.
    assert record(both, third).tables.pop("shop.items") == record(both, second).tables["shop.items"]
    assert (set(record(both, third).tables), record(both, third).behind) == ({"shop.items", "shop.orders"}, {})
    assert record(both, first).behind == {"shop.orders": number(1, 1000)}
    assert purged(both) == [1000, 3000]


def test_a_table_that_was_rolled_back_stays_quarantined_during_quiet_intervals(both: Lake) -> None:
    """The record of the same stop says that the table is complete. It was made before the table was rolled back."""
    loaded = both.metadata(ORDERS)
    both.merged()
    without_its_file(both)
    name = both.warehouse.name(ORDERS.name)
    both.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {loaded.head})")
    again = both.merged()
    assert (statuses(again)["orders"], again.exit_code) == ("quarantined", 4)
    staged(both, 2000)
    assert carry_over(both.merge_spec()) is None
    quiet = both.merged()
    assert statuses(quiet) == {"items": "unchanged", "orders": "quarantined"}
    assert record(both, quiet).behind == {"shop.orders": number(1, 1000)}
    assert [str(one) for one in quarantines_of(settings(both)).all()] == ["shop.orders"]


def test_a_view_is_read_by_its_queries_until_its_snapshots_expire(both: Lake) -> None:
    both.merged()
    found = view(settings(both))
    staged(both, 2000, ORDERS, ITEMS)
    both.merged()
    assert view(settings(both), str(number(1, 2000))) == found
    assert view(settings(both)).stop == position(1, 3000)
    for one in found.tables:
        assert {row.id for row in both.sql(one.query)} == {1, 1100}
    spec = snapshots_job(settings(both), found).spec.model_copy(update={"catalog": both.catalog})
    assert require_snapshots(both.spark, spec) == {"tables": ["shop.items", "shop.orders"]}
    name = both.warehouse.name(ORDERS.name)
    both.sql(f"CALL lake.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2999-01-01 00:00:00')")
    with pytest.raises(DataError, match="the snapshot of a view has expired") as caught:
        require_snapshots(both.spark, spec)
    assert caught.value.where["table"] == "shop.orders"


def test_one_released_too_early_is_quarantined_again(both: Lake) -> None:
    without_its_file(both)
    both.merged()
    assert len(release(settings(both))) == 1
    assert release(settings(both)) == ()
    assert statuses(both.merged())["orders"] == "quarantined"
    assert len(quarantines_of(settings(both)).all()) == 1


def test_a_newer_initial_load_and_a_rollback_release_it(both: Lake) -> None:
    without_its_file(both)
    both.merged()
    both.loaded(both.staging.load(ORDERS, [(0, "older")], position(1, 900)))
    assert list(quarantines_of(settings(both)).all()) == [ORDERS.name]
    both.loaded(both.staging.load(ORDERS, [(7, "seven")], position(1, 2000)))
    assert quarantines_of(settings(both)).all() == {}
    assert statuses(both.merged()) == {"items": "already", "orders": "already"}

    staged(both, 2000, ORDERS)
    broken = staged(both, 3000, ORDERS)
    both.merged(number(1, 3000))
    (both.staging.root / broken.files[0].key).write_bytes(b"")
    assert statuses(both.merged())["orders"] == "quarantined"
    name, before = both.warehouse.name(ORDERS.name), list(both.metadata(ORDERS).ancestry(both.metadata(ORDERS).head))
    both.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {before[1].id})")
    assert statuses(both.merged(number(1, 3000)))["orders"] == "applied"
    assert set(both.rows(ORDERS)) == {(7,), (2100,)}


def test_a_table_that_a_faster_run_brought_on_is_not_quarantined(both: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(planner, name, *more, note_advanced, **options):
        done = merge_table(replace(planner, warehouse=Warehouse(both.spark, both.catalog)), name, *more, **options)
        if name == ORDERS.name:
            raise StagedDataError("a staged file was purged")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(source_run, "merge_table", overtaken)
        result = both.merged()
    assert statuses(result) == {"items": "applied", "orders": "failed"}
    assert (result.published, quarantines_of(settings(both)).all()) == ("", {})
    assert both.merged().exit_code == 0


@pytest.mark.parametrize("point", ["quarantine.before", "quarantine.after"])
def test_a_run_killed_while_it_quarantines_heals(both: Lake, point: str) -> None:
    without_its_file(both)
    assert run_until(both.spark, point, both.merge_spec(), both.folder) == -signal.SIGKILL
    result = both.merged()
    assert statuses(result) == {"items": "already", "orders": "quarantined"}
    assert record(both, result).behind == {"shop.orders": number(1, 1000)}


def barrier(offset: int, statement: str, *names: str) -> Barrier:
    return Barrier(
        seqno=number(1, offset), position=position(1, offset), statement=statement, database="shop",
        sql_mode=1 << 21, mariadb=False, tables=tuple(f"shop.{name}" for name in names),
    )  # fmt: skip


@pytest.mark.parametrize("cause", ["lost file", "statement"])
def test_a_table_that_takes_the_rows_of_a_quarantined_one_waits_for_it(lake: Lake, cause: str) -> None:
    lake.staging.interval(position(1, 4), P0)
    lake.loaded(*(lake.staging.load(schema, [(1, "one")], P0) for schema in (ORDERS, ITEMS)))
    moved = table("moved", COLUMNS, ["id"])
    unread = [barrier(1200, "ALTER TABLE orders ADD KEY (", "orders")] if cause == "statement" else []
    before = [(ORDERS, [insert(1100)])] if cause == "lost file" else []
    lake.first = lake.staging.interval(
        P0,
        position(1, 2000),
        [*before, (moved, [insert(1600)]), (ITEMS, [insert(1700)])],
        [*unread, barrier(1500, "RENAME TABLE orders TO moved", "orders", "moved")],
    )
    kept, place = without_its_file(lake) if cause == "lost file" else (None, None)
    result = lake.merged()
    # Nothing of a table that was renamed away can be loaded again; what is lost of its files can be restored.
    first, then = ("quarantined", "quarantined") if kept else ("applied", "already")
    assert statuses(result) == {"items": "applied", "moved": "quarantined", "orders": first}
    assert set(record(lake, result).behind) == {"shop.moved"} | ({"shop.orders"} if kept else set())
    assert lake.warehouse.metadata(moved.name) is None
    assert statuses(lake.merged()) == {"items": "already", "moved": "quarantined", "orders": then}
    if kept:
        kept.rename(place)
        assert len(release(settings(lake))) == 2
        assert lake.merged().exit_code == 0
        assert set(lake.rows(moved)) == {(1,), (1100,), (1600,)}
        assert quarantines_of(settings(lake)).all() == {}


def test_one_that_keeps_its_past_and_is_dropped_is_cured_by_excluding_it(lake: Lake) -> None:
    lake.rules = (TableRule(tables=("*.orders",), mode="soft_delete"),)
    lake.staging.interval(position(1, 4), P0)
    assert lake.loaded(lake.staging.load(ORDERS, [(1, "one")], P0)).exit_code == 0
    untold = "ALTER TABLE orders ADD n INT DEFAULT (RAND())"
    statements = [
        Barrier(
            seqno=number(1, at), position=position(1, at - 5), statement=text, database="shop", sql_mode=1 << 21,
            mariadb=False, tables=("shop.orders",),
        )
        for at, text in ((1500, untold), (1600, "DROP TABLE orders"))
    ]  # fmt: skip
    lake.staging.interval(P0, position(1, 2000), [(ORDERS, [insert(1100)])], statements)
    (stopped,) = lake.merged().tables
    assert stopped.error is not None
    assert stopped.status == "quarantined"
    assert "add 'shop.orders' to tables.exclude of the source, then: loader run" in stopped.error["hint"]
    without = TableFilter(include=("*",), exclude=("shop.orders",))
    lake.staging.interval(position(1, 2000), position(1, 3000), captured=without)
    assert (lake.merged().tables, lake.merged().exit_code) == ((), 0)
    assert len(lake.rows(ORDERS)) == 1


def test_one_whose_load_was_refused_says_why(lake: Lake) -> None:
    columns = [Column("id", "int"), Column("day", "date"), Column("day__text", "int")]
    items, lake.rules = table("items", columns, ["id"]), (TableRule(tables=("*",), on_misfit="text"),)
    lake.staging.interval(position(1, 4), P0)
    (refused,) = lake.loaded(lake.staging.load(items, [(1, "2026-01-01", 1)], P0)).tables
    assert refused.error is not None
    lake.staging.interval(P0, position(1, 2000), [(items, [Change("I", number(1, 1100), 5, (2, None, 2))])])
    (stopped,) = lake.merged().tables
    assert stopped.error is not None
    assert (stopped.status, stopped.error["what"]) == (
        "quarantined",
        "changes of table shop.items are staged, but its initial load was refused",
    )
    assert refused.error["what"] in stopped.error["why"]
    assert refused.error["hint"] in stopped.error["hint"]


def test_one_that_gets_a_key_on_a_new_column_can_be_loaded_again(lake: Lake) -> None:
    bag = table("orders", [Column("name", "varchar", charset="utf8mb4")], [])
    keyed = table("orders", [Column("number", "int"), *bag.columns], ["number"])
    lake.staging.interval(position(1, 4), P0)
    assert lake.loaded(lake.staging.load(bag, [("one",), ("one",)], P0)).exit_code == 0
    again = lake.loaded(lake.staging.load(keyed, [(1, "one"), (2, "one")], position(1, 2000)))
    assert [one.error for one in again.tables] == [None]
    assert lake.rows(keyed) == {(1,): (1, "one"), (2,): (2, "one")}
    assert lake.metadata(keyed).write_order == ("number",)
