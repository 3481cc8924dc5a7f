"""Merging staged changes: what the warehouse holds equals the records applied one after the other."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, fold, number, position, table

pytestmark = pytest.mark.integration

NUMBERED = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
P0 = position(1, 1000)


def start(lake: Lake, schema=NUMBERED, rows=((1, "one"), (2, "two"), (3, "three"))):
    """A loaded table at P0, inside an interval that began before it."""
    key = lake.staging.load(schema, rows, P0, exact=position(1, 1500))
    assert lake.one(lake.loaded(key)).status == "applied"
    return list(rows)


def merge_changes(lake: Lake, changes, start=1000, stop=2000):
    """Stage the changes as one interval and merge it; return the table's result."""
    lake.staging.interval(position(1, start), position(1, stop), [(NUMBERED, changes)])
    return lake.one(lake.merged())


def test_last_version_of_each_key_wins_over_several_intervals(lake: Lake) -> None:
    rows = start(lake)
    early = [
        Change("U", number(1, 900), 5, (1, "before the load")),
        Change("D", number(1, 1000), 5, (2, "x")),
    ]
    first = [
        Change("U", number(1, 1100), 5, (1, "first")),
        Change("I", number(1, 1100), 90, (4, "new")),
        Change("D", number(1, 1200), 5, (3, "three")),
    ]
    second = [
        Change("U", number(1, 2100), 7, (1, "last")),
        Change("I", number(1, 2100), 9, (3, "back again")),
        Change("D", number(1, 2200), 5, (4, "new")),
        Change("I", number(1, 2200), 6, (5, "short")),
        Change("D", number(1, 2200), 7, (5, "short")),
        Change("I", number(1, 2200), 8, (5, "stays")),
    ]
    lake.staging.interval(position(1, 500), position(1, 2000), [(NUMBERED, early + first)], parts=2)
    lake.staging.interval(position(1, 2000), position(2, 4), [(NUMBERED, second)], parts=3)
    result = lake.one(lake.merged())
    assert lake.rows(NUMBERED) == fold(NUMBERED, rows, number(1, 1000), early + first + second)
    assert (result.inserts, result.updates, result.deletes) == (4, 2, 3)
    assert (result.rows_deleted, result.rows_inserted) == (2, 3)
    assert (result.applied_seqno, result.position) == (number(2, 4), position(2, 4))


def test_replay_changes_nothing(lake: Lake) -> None:
    start(lake)
    changes = [Change("D", number(1, 1100), 5, (1, "one")), Change("I", number(1, 1100), 6, (9, "nine"))]
    first = merge_changes(lake, changes)
    head = lake.metadata(NUMBERED).head
    for through in (None, number(1, 2000)):
        again = lake.one(lake.merged(through))
        assert (again.status, again.snapshot) == ("already", first.snapshot)
    assert lake.metadata(NUMBERED).head == head
    assert list(lake.metadata(NUMBERED).branches) == ["main"]


def test_a_column_that_an_overtaken_merge_added_late_is_dropped(lake: Lake) -> None:
    start(lake)
    name = lake.warehouse.name(NUMBERED.name)
    lake.sql(f"ALTER TABLE {name} ADD COLUMN _loader_1_char__late string")
    result = merge_changes(lake, [Change("U", number(1, 1100), 5, (1, "first"))])
    assert (result.status, result.error) == ("applied", None)
    frame = lake.warehouse.session.sql(f"SELECT * FROM {name} ORDER BY id")
    assert frame.columns == ["id", "name", "_seqno", "_committed_at"]
    assert [tuple(row)[:2] for row in frame.collect()] == [(1, "first"), (2, "two"), (3, "three")]
    assert lake.one(lake.merged()).status in {"already", "unchanged"}


def test_key_change_is_a_delete_and_an_insert(lake: Lake) -> None:
    rows = start(lake)
    chain = [  # 1 -> 2 -> 3 in one transaction, the greatest first, as `SET id = id + 1 ORDER BY id DESC` does
        Change("D", number(1, 1100), 10, (3, "three")),
        Change("I", number(1, 1100), 20, (4, "three")),
        Change("D", number(1, 1100), 30, (2, "two")),
        Change("I", number(1, 1100), 40, (3, "two")),
        Change("D", number(1, 1100), 50, (1, "one")),
        Change("I", number(1, 1100), 60, (2, "one")),
    ]
    merge_changes(lake, chain)
    assert (
        lake.rows(NUMBERED)
        == fold(NUMBERED, rows, 0, chain)
        == {(k,): v for k, v in zip((2, 3, 4), ((2, "one"), (3, "two"), (4, "three")), strict=True)}
    )
    swap = [  # 2 <-> 3 by way of a key that is free, and 4 takes its place
        Change("D", number(1, 2100), 10, (2, "one")),
        Change("I", number(1, 2100), 20, (9, "one")),
        Change("D", number(1, 2100), 30, (3, "two")),
        Change("I", number(1, 2100), 40, (2, "two")),
        Change("D", number(1, 2100), 50, (9, "one")),
        Change("I", number(1, 2100), 60, (3, "one")),
        Change("D", number(1, 2100), 70, (4, "three")),
        Change("I", number(1, 2100), 80, (9, "three")),
    ]
    merge_changes(lake, swap, 2000, 3000)
    assert lake.rows(NUMBERED) == {(2,): (2, "two"), (3,): (3, "one"), (9,): (9, "three")}


def test_order_of_records_is_a_number_not_a_text(lake: Lake) -> None:
    rows = start(lake)
    changes = [Change("U", number(1, 1100), 9, (1, "nine")), Change("U", number(1, 1100), 10, (1, "ten"))]
    merge_changes(lake, changes)
    assert lake.rows(NUMBERED) == fold(NUMBERED, rows, 0, changes)


def test_applied_position_is_in_the_commit_and_only_in_the_last_one(lake: Lake) -> None:
    start(lake)
    result = merge_changes(lake, [Change("I", number(1, 1100), 5, (7, "x"))])
    newest, deletion, load = lake.metadata(NUMBERED).ancestry(result.snapshot)
    assert newest.summary["loader.applied"] == str(number(1, 2000))
    assert newest.summary["loader.position"] == position(1, 2000)
    assert (newest.summary["loader.source"], newest.summary["loader.generation"]) == ("shop", "g1")
    assert newest.summary["loader.run"] == deletion.summary["loader.run"] != load.summary["loader.run"]
    assert "loader.applied" not in deletion.summary
    assert load.summary["loader.exact_at"] == position(1, 1500)


def test_no_record_for_a_table_means_no_commit(lake: Lake) -> None:
    start(lake)
    head = lake.metadata(NUMBERED).head
    lake.staging.interval(position(1, 500), position(1, 2000))
    assert lake.one(lake.merged()).status == "unchanged"
    old = [Change("I", number(1, 900), 5, (8, "of before the load"))]
    other = Lake(lake.spark, lake.folder / "other")
    start(other)
    other.staging.interval(position(1, 500), position(1, 2000), [(NUMBERED, old)])
    assert other.one(other.merged()).status == "unchanged"
    assert lake.metadata(NUMBERED).head == head


def test_deletes_alone(lake: Lake) -> None:
    rows = start(lake)
    changes = [Change("D", number(1, 1100), 5, row) for row in rows]
    result = merge_changes(lake, changes)
    assert (result.rows_deleted, result.rows_inserted, lake.rows(NUMBERED)) == (3, 0, {})
    assert lake.metadata(NUMBERED).applied.seqno == number(1, 2000)


EVERY_TYPE = table(
    "every `type` ä",
    [
        Column("id", "bigint", unsigned=True),
        Column("_op", "varchar", charset="latin1"),
        Column("a`b c", "text", charset="utf8mb4"),
        Column("bytes", "varbinary"),
        Column("price", "decimal", size=38, scale=10),
        Column("huge", "decimal", size=65, scale=30),
        Column("f", "float"),
        Column("d", "double"),
        Column("bits", "bit", size=64),
        Column("y", "year"),
        Column("day", "date"),
        Column("at", "datetime", size=6),
        Column("stamp", "timestamp", size=3),
        Column("span", "time", size=6),
        Column("doc", "json"),
        Column("small", "tinyint"),
        Column("wide", "int", unsigned=True),
        Column("place", "geometry"),
        Column("vec", "vector"),
        Column("far", "varchar", charset="gb18030"),
    ],
    ["id"],
)


def test_every_type_comes_through(lake: Lake) -> None:
    full = (
        "18446744073709551615",
        "x",
        "ä",
        b"\x00\xff",
        "1234567890123456789012345678.0123456789",
        "1" * 35 + "." + "2" * 30,
        "0.1",
        "1e308",
        "18446744073709551615",
        "0000",
        "0001-01-01",
        "9999-12-31 23:59:59.999999",
        "2038-01-19 03:14:07.123",
        "-838:59:59.000000",
        '{"a": 1}',
        "-128",
        "4294967295",
        bytes.fromhex("e61000000101000000000000000000f03f0000000000000040"),
        "[1,-1.1754944e-38]",
        "你😀",
    )
    empty = ("1", *[None] * (len(full) - 1))
    start(lake, EVERY_TYPE, [full])
    lake.staging.interval(
        position(1, 1000),
        position(1, 2000),
        [(EVERY_TYPE, [Change("I", number(1, 1100), 5, empty), Change("U", number(1, 1100), 6, full)])],
    )
    lake.one(lake.merged())
    expected = (
        Decimal(2**64 - 1), "x", "ä", b"\x00\xff", Decimal(full[4]), full[5], pytest.approx(0.1), 1e308,
        Decimal(2**64 - 1), 0, datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(2038, 1, 19, 3, 14, 7, 123000, datetime.UTC).astimezone().replace(tzinfo=None),
        "-838:59:59.000000", '{"a": 1}', -128, 4294967295, *full[-3:],
    )  # fmt: skip
    assert lake.rows(EVERY_TYPE) == {
        (expected[0],): expected,
        (Decimal(1),): (Decimal(1), *[None] * (len(full) - 1)),
    }
