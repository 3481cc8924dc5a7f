"""A paused table keeps its rows while all others go on, costs nobody anything, and catches up exactly once resumed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from loader.errors import UsageError
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.jobs.replay_job import replay
from loader.materialise.maintain.spec import MaintainSpec
from loader.materialise.merge.carry_over import carry_over
from loader.materialise.spec import ReplaySpec
from loader.model.table import TableSchema
from loader.pipeline import kept_files, pause, pauses_of, purge, quarantines_of, read_tables_job, resume, view
from loader.staging.documents import Barrier
from loader.staging.published import PostponedTable
from tests.integration.materialise.faults.test_quarantine import (
    COLUMNS,
    ITEMS,
    ORDERS,
    P0,
    barrier,
    insert,
    record,
    settings,
    staged,
    statuses,
)
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import number, position, table

pytestmark = pytest.mark.integration

MOVED = table("moved", COLUMNS, ["id"])
BY = "ada"


@pytest.fixture
def both(lake: Lake) -> Lake:
    """Two loaded tables with one row each, and an interval with a record for both. `orders` is paused."""
    lake.staging.interval(position(1, 4), P0)
    keys = [lake.staging.load(schema, [(1, "one")], P0) for schema in (ORDERS, ITEMS)]
    assert lake.loaded(*keys).exit_code == 0
    (made,) = pause(settings(lake), ["shop.orders"], BY, " disk full ")
    assert (made.table, made.by, made.reason) == ("shop.orders", BY, "disk full")
    staged(lake, 1000, ORDERS, ITEMS)
    return lake


def keys(lake: Lake, schema: TableSchema) -> set[int]:
    return {key for (key,) in lake.rows(schema)}


def starts(lake: Lake) -> list[int]:
    return [one.start_seqno % 10**6 for one in purge(settings(lake), timedelta(0))]


def test_its_changes_wait_and_it_catches_up(both: Lake) -> None:
    before = both.metadata(ORDERS).head
    first = both.merged()
    assert (statuses(first), first.exit_code) == ({"items": "applied", "orders": "paused"}, 0)
    (waiting,) = (one for one in first.tables if one.status == "paused")
    (why,) = pauses_of(settings(both)).all().values()
    assert waiting.note == f"paused since {why.since:%F %T} UTC by ada: disk full"
    noted = record(both, first)
    assert (list(noted.tables), noted.behind) == (["shop.items"], {"shop.orders": number(1, 1000)})
    assert noted.postponed == {
        "shop.orders": PostponedTable(why="paused", snapshot=before, applied=number(1, 1000), position=P0)
    }
    assert view(settings(both)).missing == ("shop.orders",)

    staged(both, 2000, ITEMS)
    staged(both, 3000, ORDERS, ITEMS)
    assert both.merged().exit_code == 0
    assert (keys(both, ORDERS), keys(both, ITEMS)) == ({1}, {1, 1100, 2100, 3100})
    assert both.metadata(ORDERS).head == before
    assert starts(both) == [2000]  # what the paused table needs stays
    assert [(one.table, one.intervals, one.files) for one in kept_files(settings(both))] == [("shop.orders", 2, 2)]

    (ended,) = resume(settings(both), ["shop.o*"])
    assert ended == why
    assert starts(both) == []  # it still needs them
    last = both.merged()
    assert (statuses(last), last.exit_code) == ({"items": "already", "orders": "applied"}, 0)
    assert keys(both, ORDERS) == {1, 1100, 3100}
    done = record(both, last)
    assert (set(done.tables), done.behind, done.postponed) == ({"shop.items", "shop.orders"}, {}, {})
    assert (starts(both), kept_files(settings(both))) == ([1000, 3000], [])
    assert statuses(both.merged()) == {"items": "already", "orders": "already"}


def test_quiet_intervals_are_published_without_spark_and_it_stays_behind(both: Lake) -> None:
    both.merged()
    for start in (2000, 3000):
        both.staging.interval(position(1, start), position(1, start + 1000))
        quiet = carry_over(both.merge_spec())
        assert quiet is not None
        assert statuses(quiet) == {"items": "unchanged", "orders": "paused"}
        assert record(both, quiet).behind == {"shop.orders": number(1, 1000)}
        assert list(record(both, quiet).postponed) == ["shop.orders"]
    assert starts(both) == []
    both.staging.interval(position(1, 4000), position(1, 5000))
    pause(settings(both), ["shop.items"], BY, "too")
    assert carry_over(both.merge_spec()) is None  # a run must look at it
    resume(settings(both), ["shop.*"])
    assert carry_over(both.merge_spec()) is None
    assert statuses(both.merged()) == {"items": "unchanged", "orders": "applied"}
    assert keys(both, ORDERS) == {1, 1100}


def test_it_catches_up_from_where_a_record_had_it(both: Lake) -> None:
    """And not from its last commit, which may be a year ago."""
    resume(settings(both), ["shop.orders"])
    both.merged()
    staged(both, 2000, ITEMS)
    both.merged()
    pause(settings(both), ["shop.orders"], BY, "again")
    staged(both, 3000, ORDERS)
    noted = record(both, both.merged())
    assert noted.behind == {"shop.orders": number(1, 3000)}
    assert noted.postponed["shop.orders"].applied == number(1, 2000)
    staged(both, 4000, ITEMS)
    assert record(both, both.merged()).behind == {"shop.orders": number(1, 3000)}
    resume(settings(both), ["shop.orders"])
    assert both.merged().exit_code == 0
    assert keys(both, ORDERS) == {1, 1100, 3100}


def rename(at: int, statement: str, *names: str) -> Barrier:
    return barrier(at, f"RENAME TABLE {statement}", *names)


def test_a_table_that_takes_the_rows_of_a_paused_one_waits_for_it(both: Lake) -> None:
    both.merged()
    both.staging.interval(
        position(1, 2000),
        position(1, 3000),
        [(ORDERS, [insert(2100)]), (MOVED, [insert(2600)]), (ITEMS, [insert(2700)])],
        [rename(2500, "orders TO moved", "orders", "moved")],
    )
    for number_of_run in range(2):
        result = both.merged()
        states = {"items": ("applied", "already")[number_of_run], "moved": "waiting", "orders": "paused"}
        assert (statuses(result), result.exit_code) == (states, 0)
    assert quarantines_of(settings(both)).all() == {}
    noted = record(both, result)
    assert noted.postponed["shop.moved"] == PostponedTable(why="waiting", waits_for="shop.orders")
    assert both.warehouse.metadata(MOVED.name) is None
    assert keys(both, ORDERS) == {1}
    both.staging.interval(position(1, 3000), position(1, 4000))
    quiet = carry_over(both.merge_spec())
    assert quiet is not None and statuses(quiet)["moved"] == "waiting"
    assert starts(both) == []

    resume(settings(both), ["shop.orders"])
    result = both.merged()
    assert (result.exit_code, record(both, result).behind) == (0, {})
    assert keys(both, MOVED) == {1, 1100, 2100, 2600}
    assert keys(both, ITEMS) == {1, 1100, 2700}


def test_a_chain_of_tables_waits_for_a_paused_one(both: Lake) -> None:
    """The one in the middle is gone at the end of the interval, and yet its rows are not skipped."""
    both.merged()
    last = table("last", COLUMNS, ["id"])
    both.staging.interval(
        position(1, 2000),
        position(1, 3000),
        [(ORDERS, [insert(2100)]), (MOVED, [insert(2400)]), (last, [insert(2600)])],
        [rename(2300, "orders TO moved", "orders", "moved"), rename(2500, "moved TO last", "moved", "last")],
    )
    result = both.merged()
    assert statuses(result) == {"items": "unchanged", "last": "waiting", "moved": "waiting", "orders": "paused"}
    resume(settings(both), ["*"])
    assert both.merged().exit_code == 0
    assert keys(both, last) == {1, 1100, 2100, 2400, 2600}


def test_a_paused_table_swaps_with_another_one(both: Lake) -> None:
    both.merged()
    both.staging.interval(
        position(1, 2000),
        position(1, 3000),
        [(ORDERS, [insert(2100)]), (ITEMS, [insert(2200)])],
        [rename(2500, "orders TO x, items TO orders, x TO items", "orders", "x", "items")],
    )
    staged(both, 3000, ORDERS, ITEMS)
    result = both.merged()
    assert (statuses(result), result.exit_code) == ({"items": "waiting", "orders": "paused"}, 0)
    assert (keys(both, ORDERS), keys(both, ITEMS)) == ({1}, {1, 1100, 2200})
    staged(both, 4000, ITEMS)
    assert statuses(both.merged()) == {"items": "waiting", "orders": "paused"}
    resume(settings(both), ["*"])
    assert both.merged().exit_code == 0
    assert (keys(both, ORDERS), keys(both, ITEMS)) == ({1, 1100, 2200, 3100}, {1, 1100, 2100, 3100, 4100})


def test_a_paused_table_that_is_renamed_to_takes_the_rows_later(both: Lake) -> None:
    """From the snapshot of that time, which maintenance keeps."""
    resume(settings(both), ["*"])
    both.merged()
    pause(settings(both), ["shop.items"], BY, "no")
    both.staging.interval(
        position(1, 2000),
        position(1, 3000),
        [(ORDERS, [insert(2100)])],
        [barrier(2300, "DROP TABLE items", "items"), rename(2500, "orders TO items", "orders", "items")],
    )
    assert statuses(both.merged()) == {"items": "paused", "orders": "applied"}
    staged(both, 3000, ITEMS)
    assert statuses(both.merged()) == {"items": "paused", "orders": "unchanged"}
    assert keys(both, ITEMS) == {1, 1100}
    spec = both.merge_spec()
    maintained = maintain(
        both.spark,
        MaintainSpec(
            source=spec.source, generation=spec.generation, staging_root=spec.staging_root, catalog=spec.catalog,
            keep_days=0,
        ),
    )  # fmt: skip
    assert maintained.exit_code == 0
    resume(settings(both), ["*"])
    assert both.merged().exit_code == 0
    assert keys(both, ITEMS) == {1, 1100, 2100, 3100}


def test_statements_wait_with_the_rows(both: Lake) -> None:
    both.merged()
    both.staging.interval(position(1, 2000), position(1, 3000), [], [barrier(2500, "TRUNCATE TABLE orders", "orders")])
    staged(both, 3000, ORDERS)
    assert statuses(both.merged()) == {"items": "unchanged", "orders": "paused"}
    both.staging.interval(position(1, 4000), position(1, 5000), [], [barrier(4500, "DROP TABLE orders", "orders")])
    assert statuses(both.merged()) == {"items": "unchanged", "orders": "paused"}
    assert keys(both, ORDERS) == {1}
    resume(settings(both), ["*"])
    assert both.merged().exit_code == 0
    assert keys(both, ORDERS) == {3100}  # a dropped table keeps its last rows


def test_a_quarantined_table_that_is_paused_stays_quarantined(both: Lake) -> None:
    resume(settings(both), ["*"])
    manifest = staged(both, 2000, ORDERS)
    path = both.staging.root / manifest.files[0].key
    path.rename(both.folder / "kept.csv")
    assert statuses(both.merged())["orders"] == "quarantined"
    pause(settings(both), ["shop.orders"], BY, "later")
    for through in (number(1, 2000), None):
        assert statuses(both.merged(through))["orders"] == "paused"
    resume(settings(both), ["*"])
    assert statuses(both.merged())["orders"] == "quarantined"


def test_an_older_interval_is_run_again_while_it_is_paused(both: Lake) -> None:
    both.merged()
    staged(both, 2000, ORDERS, ITEMS)
    both.merged()
    again = both.merged(number(1, 2000))
    assert statuses(again) == {"items": "already", "orders": "paused"}
    resume(settings(both), ["*"])
    again = both.merged(number(1, 2000))
    assert (statuses(again)["orders"], keys(both, ORDERS)) == ("applied", {1, 1100})
    assert record(both, again).behind == {}
    assert both.merged().exit_code == 0
    assert keys(both, ORDERS) == {1, 1100, 2100}


def test_a_replay_compares_it_and_publishes_nothing(both: Lake) -> None:
    resume(settings(both), ["*"])
    both.merged()
    pause(settings(both), ["shop.orders"], BY, "look")
    name = both.warehouse.name(ORDERS.name)
    both.sql(f"DELETE FROM {name} WHERE id = 1100")
    spec = both.merge_spec()
    fields = spec.model_dump(exclude={"through_seqno", "now", "tables"})
    wanted = ReplaySpec(**fields, since_seqno=number(1, 1000))
    (same, differs) = replay(both.spark, wanted).tables
    assert (same.status, differs.status, differs.inserts) == ("same", "differs", 1)
    (same, refused) = replay(both.spark, wanted.model_copy(update={"publish": True})).tables
    assert (same.status, refused.status, refused.inserts) == ("same", "failed", 1)
    assert refused.error is not None
    assert refused.error["what"] == "the table is paused, so its correction is not published"
    assert refused.error["hint"].startswith("loader resume shop.orders; then")
    assert keys(both, ORDERS) == {1}
    resume(settings(both), ["*"])
    assert replay(both.spark, wanted.model_copy(update={"publish": True})).exit_code == 0
    assert keys(both, ORDERS) == {1, 1100}


def test_it_is_not_loaded_again(both: Lake) -> None:
    for tables in ((), ("shop.orders",), ("shop.items", "shop.orders")):
        with pytest.raises(UsageError, match="paused tables cannot be loaded again") as caught:
            read_tables_job(settings(both), tables, again=True)
        assert caught.value.hint == "loader resume shop.orders; then load them again"


def test_pauses_and_resumptions_that_mean_nothing_are_refused(both: Lake) -> None:
    with pytest.raises(UsageError, match="needs a reason"):
        pause(settings(both), ["shop.items"], BY, "  ")
    with pytest.raises(UsageError, match="no such table") as caught:
        pause(settings(both), ["shop.items", "shop.nothing"], BY, "why")
    assert caught.value.why == "shop.nothing matches none of: shop.items, shop.orders"
    with pytest.raises(UsageError, match="no such paused table") as caught:
        resume(settings(both), ["shop.items"])
    assert caught.value.why == "shop.items matches none of: shop.orders"
    assert [one.table for one in pauses_of(settings(both)).all().values()] == ["shop.orders"]
    (first,) = pauses_of(settings(both)).all().values()
    again = pause(settings(both), ["shop.*"], "bob", "another reason")
    assert [(one.table, one.by, one.reason) for one in again] == [
        ("shop.items", "bob", "another reason"), ("shop.orders", BY, first.reason),
    ]  # fmt: skip
