"""What kernels make of staged records is what Spark's SQL makes of them, and what is not for them is left to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from loader.materialise.collapse import last_versions as collapsing
from loader.materialise.collapse.native import collapse_natively
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.plan.merge_plan import FileGroup, RecordRange, Work
from loader.materialise.rules import TableRule
from loader.model.table import Column, TableSchema
from loader.native_collapse import parquet_files
from loader.schema.evolution import ColumnOrigin
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, Staging, fold, number, position, table

pytestmark = pytest.mark.integration

P0, P1 = position(1, 1000), position(1, 2000)
EVERY = table(
    "every",
    [
        Column("a", "bigint", unsigned=True),
        Column("b", "tinyint"),
        Column("c", "decimal", size=20, scale=4),
        Column("d", "decimal", size=50, scale=0),
        Column("e", "double"),
        Column("f", "float"),
        Column("g", "varchar", charset="utf8mb4"),
        Column("h", "blob"),
        Column("i", "date"),
        Column("j", "datetime", size=6),
        Column("k", "timestamp", size=3),
        Column("l", "time"),
        Column("m", "enum", labels=("x", "y")),
        Column("n", "json"),
        Column("o", "bit", size=64),
        Column("p", "year"),
    ],
    ["g", "a"],
)
ROWS: list[tuple[Any, ...]] = [
    (2**64 - 1, -128, "1.5000", "9" * 50, 1e-323, "3.4028235e38", "a\n\\b", b"\0\xff", "0001-01-01",
     "0001-01-01 00:00:00.000001", "1970-01-01 00:00:01.000", "-838:59:59", "x", '{"a": "\\n"}', 2**64 - 1, "0000"),
    (0, 127, "-9999999999999999.9999", "-1", -0.1, "0.1", "", b"", "1582-10-10",
     "1582-10-10 12:00:00.000000", "2038-01-19 03:14:07.999", "00:00:00", "y", "null", 0, "2155"),
    (0, *[None] * 5, "é", *[None] * 9),
    (1, *[None] * 5, "é", *[None] * 9),
]  # fmt: skip


def work_of(staging: Staging, schema: TableSchema, changes: list[Change], parts: int = 3, **rule: Any) -> Work:
    """All records after the position P0 as one work."""
    manifest = staging.interval(position(1, 500), P1, [(schema, changes)], parts=parts)
    kept = {column.name: ColumnOrigin(column.name) for column in schema.columns}
    after, through = number(1, 1000), number(1, 2000)
    source = FileGroup(schema, manifest.files, (RecordRange(after, through, kept),))
    return Work(schema.name, schema, after, through, P1, (source,), {}, (), TableRule(tables=("*",), **rule))


@contextmanager
def both(spark: SparkSession, staging: Staging, work: Work) -> Iterator[tuple[Changes, Changes]]:
    """As kernels find them, and as Spark does."""
    ours = collapse_natively(spark, staging.store, work)
    assert ours is not None
    theirs = collapsing._collapsed(collapsing.read_records(spark, staging.store, work), work, None)
    yield ours, theirs
    ours.release()
    theirs.release()


def content(changes: Changes, work: Work) -> tuple[Any, ...]:
    values = ", ".join(column.value for column in work.layout.columns)
    rows = changes.frame.selectExpr("_op", "_new", *(f"{column.value}" for column in work.layout.columns))
    counts = (
        changes.keys,
        changes.rows_to_insert,
        changes.rows_to_delete,
        changes.inserts,
        changes.updates,
        changes.deletes,
    )
    return (
        counts,
        changes.within,
        changes.misfits,
        changes.partial,
        values,
        rows.dtypes,
        sorted(map(repr, rows.collect())),
    )


def mixed() -> list[Change]:
    """Records before and after P0, of every kind, in files that share keys."""
    changes = [Change("I", number(1, 900), place, row) for place, row in enumerate(ROWS)]
    changes += [Change("I", number(1, 1100), place, row) for place, row in enumerate(ROWS)]
    changes += [Change("U", number(1, 1200), 7, (*ROWS[0][:1], 5, *ROWS[0][2:]))]
    changes += [Change("D", number(1, 1200), 9, ROWS[1]), Change("D", number(1, 1300), 0, ROWS[2])]
    changes += [Change("I", number(1, 1300), 3, ROWS[2])]
    return changes


@pytest.mark.parametrize("rule", [{}, {"mode": "soft_delete"}, {"on_misfit": "text"}, {"on_misfit": "null"}])
@pytest.mark.parametrize("few", [True, False], ids=["in order", "as staged"])
def test_both_ways_find_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any], few: bool
) -> None:
    if not few:
        monkeypatch.setattr(parquet_files, "_SORTED_ROWS", 0)
    staging = Staging(tmp_path)
    work = work_of(staging, EVERY, mixed(), **rule)
    with both(spark, staging, work) as (ours, theirs):
        assert ours.keys == 4
        assert ours.sorted is few
        assert content(ours, work) == content(theirs, work)


def test_no_record_is_new(spark: SparkSession, tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    work = work_of(staging, EVERY, [change for change in mixed() if change.seqno < number(1, 1000)])
    with both(spark, staging, work) as (ours, theirs):
        assert content(ours, work) == content(theirs, work)
        assert ours.keys == 0


@pytest.mark.parametrize("kind", ["bigint", "varchar", "varbinary", "datetime", "double", "decimal"])
def test_a_range_of_keys_of_any_type(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    values: dict[str, list[Any]] = {
        "bigint": [-5, 2**62, 7],
        "varchar": ["it's", "\U0001f600", ""],
        "varbinary": [b"\xff", b"", b"\x0a'"],
        "datetime": ["2026-01-01 00:00:00.5", "1969-12-31 23:59:59.0", "0001-01-01 00:00:00.0"],
        "double": [1e300, -1e-300, 0.1],
        "decimal": ["0.0000001", "-12345.0000000", "3.0000000"],
    }
    schema = table("keyed", [Column("k", kind, size=20, scale=7, charset="utf8mb4"), Column("v", "int")], ["k"])
    changes = [Change("I", number(1, 1100), place, (value, place)) for place, value in enumerate(values[kind])]
    staging = Staging(tmp_path)
    work = work_of(staging, schema, changes)
    with both(spark, staging, work) as (ours, theirs):
        inside = [found.frame.withColumnRenamed("c0", "k").where(found.within).count() for found in (ours, theirs)]
        assert inside == [3, 3]
        assert content(ours, work)[0] == content(theirs, work)[0]


PLAIN = table("plain", [Column("k", "int"), Column("d", "date"), Column("v", "int")], ["k"])
NEW = number(1, 1100)


@pytest.mark.parametrize(
    "changes",
    [
        [Change("I", NEW, 0, (1, "0000-00-00", 1))],
        [Change("U", NEW, 0, (1, None, None), absent="02")],
        [Change("I", NEW, 0, (None, None, 1))],
        [Change("I", NEW, 0, (1, None, 2**31))],
    ],
    ids=["no date", "left out", "no key", "too large"],
)
def test_what_is_unusual_is_for_spark(spark: SparkSession, tmp_path: Path, changes: list[Change]) -> None:
    staging = Staging(tmp_path)
    assert collapse_natively(spark, staging.store, work_of(staging, PLAIN, changes)) is None


def test_a_key_of_the_year_0_is_for_spark(spark: SparkSession, tmp_path: Path) -> None:
    schema = table("years", [Column("k", "date"), Column("v", "int")], ["k"])
    staging = Staging(tmp_path)
    assert (
        collapse_natively(spark, staging.store, work_of(staging, schema, [Change("I", NEW, 0, ("0000-01-01", 1))]))
        is None
    )


def test_it_may_be_unusual_where_it_does_not_count(spark: SparkSession, tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    changes = [Change("U", number(1, 900), 0, (1, "0000-00-00", None), absent="04"), Change("I", NEW, 0, (2, None, 1))]
    found = collapse_natively(spark, staging.store, work_of(staging, PLAIN, changes))
    assert found is not None
    assert found.keys == 1
    found.release()


def test_tables_without_a_key_and_histories_are_for_spark(spark: SparkSession, tmp_path: Path) -> None:
    bag = table("bag", [Column("v", "int")], [])
    for place, (schema, rule) in enumerate([(bag, {}), (PLAIN, {"mode": "history"})]):
        staging = Staging(tmp_path / str(place))
        changes = [Change("I", NEW, 0, (1,) * len(schema.columns))]
        assert collapse_natively(spark, staging.store, work_of(staging, schema, changes, **rule)) is None


def test_files_of_rows_are_gone_when_a_merge_is_over(lake: Lake) -> None:
    scratch = lake.folder / "scratch"
    scratch.mkdir()
    lake.spark.conf.set("spark.local.dir", str(scratch))
    try:
        lake.one(lake.loaded(lake.staging.load(PLAIN, [(1, None, 1), (2, None, 2)], P0)))
        changes = [Change("D", NEW, 0, (1, None, 1)), Change("U", NEW, 1, (2, "2026-01-01", 3))]
        lake.staging.interval(P0, P1, [(PLAIN, changes)])
        lake.one(lake.merged())
    finally:
        lake.spark.conf.unset("spark.local.dir")
    assert {row[0]: row[2] for row in lake.rows(PLAIN).values()} == {2: 3}
    assert list(scratch.iterdir()) == []


def test_rows_are_written_in_the_order_of_their_keys(lake: Lake) -> None:
    lake.one(lake.loaded(lake.staging.load(PLAIN, [], P0)))
    changes = [
        Change("I", number(1, 1100 + place % 7), place, (place * 7919 % 1000, None, place)) for place in range(999)
    ]
    lake.staging.interval(P0, P1, [(PLAIN, changes)], parts=4)
    lake.one(lake.merged())
    files = lake.sql(f"SELECT file_path FROM {lake.warehouse.name(PLAIN.name)}.files")
    assert len(files) == 1
    keys = [row[0] for row in lake.spark.read.parquet(files[0][0]).select("k").collect()]
    assert keys == sorted(change.values[0] for change in changes)
    assert len(lake.rows(PLAIN)) == len(fold(PLAIN, [], 0, changes))
