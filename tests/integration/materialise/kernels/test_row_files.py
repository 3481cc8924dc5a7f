"""Rows of a merge in data files that the loader writes: the same rows, bounds and order as by Spark's INSERT."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow.parquet as pq
import pytest

from loader.errors import RetryableError
from loader.materialise.collapse import native_tasks, record_files
from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.merge import merge_stages, row_files, table_merge
from loader.materialise.parquet import row_writer, table_files, task_files
from loader.materialise.rules import TableRule
from loader.model.table import Column, TableName, TableSchema
from loader.native_collapse import parquet_files
from tests.integration.materialise.kernels.test_native import EVERY, ROWS
from tests.integration.materialise.kernels.test_native_load import by_pyiceberg, files
from tests.integration.materialise.kernels.test_native_tasks import work_in_tasks
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

P0, P1, P2, NEW = position(1, 1000), position(1, 2000), position(1, 3000), number(1, 1100)
ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
ORDERS = table("orders", [ID, NAME], ["id"])


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the loader wrote the rows of each insert."""
    done: list[bool] = []
    work = row_files.write_row_files

    def write(*arguments: Any) -> DataFiles | None:
        found = work(*arguments)
        done.append(found is not None)
        return found

    monkeypatch.setattr(merge_stages, "write_row_files", write)
    return done


@pytest.fixture(params=["sorted", "as staged", "in tasks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How kernels collapse the records."""
    if request.param == "as staged":
        monkeypatch.setattr(parquet_files, "_SORTED_ROWS", 0)
    if request.param == "in tasks":
        work_in_tasks(monkeypatch)
        monkeypatch.setattr(native_tasks, "MANY_ROWS", 0)
    return str(request.param)


def merge(lake: Lake, schema: TableSchema, changes: list[Change], parts: int = 3) -> None:
    lake.staging.interval(P0, P1, [(schema, changes)], parts=parts)
    assert lake.one(lake.merged()).status == "applied"


def load(lake: Lake, schema: TableSchema, rows: list[tuple[Any, ...]]) -> None:
    lake.one(lake.loaded(lake.staging.load(schema, rows, P0)))


def every_change() -> list[Change]:
    """A new row, a changed one, and one that is deleted and comes back; the last one is deleted."""
    return [
        Change("I", NEW, 0, ROWS[3]),
        Change("U", NEW, 1, (*ROWS[0][:1], 5, *ROWS[0][2:])),
        Change("D", NEW, 2, ROWS[1]),
        Change("I", NEW + 1, 0, ROWS[1]),
        Change("D", NEW + 1, 1, ROWS[2]),
    ]


@pytest.mark.parametrize("rule", [{}, {"mode": "soft_delete"}, {"on_misfit": "text"}], ids=str)
def test_rows_and_column_bounds_are_those_of_spark(
    lake: Lake, written: list[bool], monkeypatch: pytest.MonkeyPatch, way: str, rule: dict[str, Any]
) -> None:
    if way == "in tasks" and rule and not IN_SWEEP:
        pytest.skip("takes a while; runs in the sweep")
    lake.rules = (TableRule(tables=("*",), seqno_column="at", committed_at_column="on", **rule),)
    copy = TableSchema(TableName("shop", "by_spark"), EVERY.columns, EVERY.key)
    load(lake, EVERY, ROWS[:2])
    load(lake, copy, ROWS[:2])
    refused = table_files.row_format
    monkeypatch.setattr(
        table_files,
        "row_format",
        lambda metadata, layout: None if "by_spark" in metadata.name else refused(metadata, layout),
    )
    lake.staging.interval(P0, P1, [(schema, every_change()) for schema in (EVERY, copy)], parts=3)
    assert [one.status for one in lake.merged().tables] == ["applied", "applied"]
    assert sorted(written) == [False, True]
    assert on_disk(lake) == named(lake, EVERY, copy)
    assert lake.bag(EVERY.name) == lake.bag(copy.name)
    independent = [sorted(map(repr, by_pyiceberg(lake, schema.name))) for schema in (EVERY, copy)]
    assert independent[0] == independent[1]
    if way == "sorted":
        assert _bounds(lake, EVERY) == _bounds(lake, copy)
    assert [one.status for one in lake.merged().tables] == ["already", "already"]


def _bounds(lake: Lake, schema: TableSchema) -> list[tuple[Any, ...]]:
    """Of each column in the data file of the merge."""
    names = ("lower_bound", "upper_bound", "null_value_count", "value_count")
    file = max((file for file in files(lake, schema) if file["content"] == 0), key=lambda file: file["record_count"])
    columns = lake.warehouse.session.table(lake.warehouse.name(schema.name)).columns
    return [tuple(file["readable_metrics"][column][name] for name in names) for column in columns]


def test_many_rows_become_several_sorted_files(
    lake: Lake, written: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "_SORTED_ROWS", 0)
    monkeypatch.setattr(parquet_files, "_GROUP", 50)
    monkeypatch.setattr(record_files, "_FILE_BYTES", 10_000)
    monkeypatch.setattr(row_writer, "_GROUP_BYTES", 1000)
    changes = [Change("I", NEW + place % 7, place, (place * 7919 % 1000, f"name {place}")) for place in range(999)]
    load(lake, ORDERS, [])
    merge(lake, ORDERS, changes, parts=4)
    assert written == [True]
    assert sorted(lake.rows(ORDERS).values()) == sorted(change.values for change in changes)
    found = files(lake, ORDERS)
    assert len(found) > 4
    for file in found:
        parquet = pq.ParquetFile(file["file_path"].removeprefix("file:"))
        assert len(file["split_offsets"]) == parquet.num_row_groups > 1
        keys = parquet.read()["id"].to_pylist()
        assert keys == sorted(keys)
        assert (keys[0], keys[-1]) == tuple(
            file["readable_metrics"]["id"][f"{end}_bound"] for end in ("lower", "upper")
        )


@pytest.mark.usefixtures("way")
def test_only_deletions_write_no_data_file(lake: Lake, written: list[bool]) -> None:
    load(lake, ORDERS, [(1, "one"), (2, "two")])
    merge(lake, ORDERS, [Change("D", NEW, 0, (1, "one"))], parts=1)
    assert written == []
    assert lake.rows(ORDERS) == {(2,): (2, "two")}


@pytest.mark.parametrize(
    "asked",
    [
        "ADD PARTITION FIELD bucket(4, id)",
        "SET TBLPROPERTIES ('write.parquet.compression-codec' = 'gzip')",
        "SET TBLPROPERTIES ('write.parquet.bloom-filter-enabled.column.id' = 'true')",
        "ADD COLUMN own struct<a: int>",
    ],
)
def test_what_only_spark_writes(lake: Lake, written: list[bool], asked: str) -> None:
    load(lake, ORDERS, [(1, "one")])
    lake.sql(f"ALTER TABLE lake.shop.orders {asked}")
    merge(lake, ORDERS, [Change("U", NEW, 0, (1, "eins")), Change("I", NEW, 1, (2, "two"))])
    assert written == [False]
    assert lake.rows(ORDERS) == {(1,): (1, "eins"), (2,): (2, "two")}


@pytest.mark.usefixtures("way")
def test_columns_of_others_are_null_and_wider_columns_are_kept(lake: Lake, written: list[bool]) -> None:
    load(lake, ORDERS, [(1, "one")])
    lake.sql("ALTER TABLE lake.shop.orders ADD COLUMN own int")
    lake.sql("ALTER TABLE lake.shop.orders ALTER COLUMN id TYPE bigint")
    lake.sql("UPDATE lake.shop.orders SET own = 5")
    merge(lake, ORDERS, [Change("I", NEW, 1, (2, "two"))])
    assert written == [True]
    assert sorted((row["id"], row["name"], row["own"]) for row in by_pyiceberg(lake, ORDERS.name)) == [
        (1, "one", 5),
        (2, "two", None),
    ]


def test_a_warehouse_elsewhere_is_written_by_spark(
    lake: Lake, written: list[bool], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    work_in_tasks(monkeypatch)
    monkeypatch.setattr(native_tasks, "MANY_ROWS", 0)
    monkeypatch.setattr(task_files, "sibling_folder", lambda *_: None)
    load(lake, ORDERS, [(1, "one")])
    with caplog.at_level(logging.INFO):
        merge(lake, ORDERS, [Change("I", NEW, 1, (2, "two"))])
    assert "inserted by Spark: the warehouse is not next to the staging area" in caplog.text
    assert written == []
    assert lake.rows(ORDERS) == {(1,): (1, "one"), (2,): (2, "two")}


def test_files_of_tasks_do_not_outlive_a_change_of_the_columns(
    lake: Lake, written: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tool adds a column after the tasks have written their files. Spark inserts the records of the tasks."""
    work_in_tasks(monkeypatch)
    monkeypatch.setattr(native_tasks, "MANY_ROWS", 0)
    apply = table_merge._merge

    def change_and_apply(*arguments: Any) -> Any:
        assert len(on_disk(lake)) == 3
        lake.sql("ALTER TABLE lake.shop.orders ADD COLUMN own int")
        return apply(*arguments)

    monkeypatch.setattr(table_merge, "_merge", change_and_apply)
    load(lake, ORDERS, [(1, "one")])
    merge(lake, ORDERS, [Change("I", NEW, 1, (2, "two")), Change("U", NEW + 1, 0, (1, "eins"))], parts=2)
    assert written == [False]
    assert lake.rows(ORDERS) == {(1,): (1, "eins"), (2,): (2, "two")}
    assert on_disk(lake) == named(lake, ORDERS)


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_first_merge_that_fails_after_its_tasks_leaves_an_empty_table_for_the_next(
    lake: Lake, written: list[bool], monkeypatch: pytest.MonkeyPatch, mode: Any, parts: int
) -> None:
    work_in_tasks(monkeypatch)
    monkeypatch.setattr(native_tasks, "MANY_ROWS", 0)
    lake.rules = (TableRule(tables=("*",), mode=mode),)
    first_merge_fails(lake, monkeypatch, parts)
    assert lake.one(lake.merged()).status == "applied"
    assert written == [True]
    kept = range(4 if mode == "soft_delete" else 3)
    assert sorted(row["id"] for row in by_pyiceberg(lake, ORDERS.name)) == list(kept)
    assert on_disk(lake) == named(lake, ORDERS)
    assert lake.one(lake.merged()).status == "already"


def first_merge_fails(lake: Lake, monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    """The catalog does not answer once the tasks have written the files of a new table."""
    lake.staging.interval(position(1, 4), P0)
    made = barrier(1050, "CREATE TABLE orders (id INT PRIMARY KEY, name TEXT)", "orders")
    changes = [Change("I", NEW, place, (place, "new")) for place in range(4)]
    lake.staging.interval(P0, P1, [(ORDERS, [*changes, Change("D", NEW + 1, 0, (3, "new"))])], [made], parts)

    def fail(*_: Any) -> None:
        assert len(on_disk(lake)) == parts
        raise RetryableError("the catalog does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(table_merge, "_merge", fail)
        (result,) = lake.merged().tables
    assert result.status == "failed"
    assert lake.metadata(ORDERS).head is None
    assert on_disk(lake) == set()


def test_the_rule_of_a_table_that_was_never_merged_is_changed_by_dropping_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_in_tasks(monkeypatch)
    first_merge_fails(lake, monkeypatch, 1)
    lake.rules = (TableRule(tables=("*",), mode="soft_delete"),)
    (result,) = lake.merged().tables
    assert result.error is not None
    assert result.error["hint"].endswith("drop the table in the warehouse, then: loader run")
    lake.sql("DROP TABLE lake.shop.orders PURGE")
    assert lake.one(lake.merged()).rows_inserted == 4


def on_disk(lake: Lake) -> set[str]:
    """The names of all data files."""
    return {path.name for path in (lake.folder / "warehouse").rglob("*.parquet") if "deletes" not in path.name}


def named(lake: Lake, *schemas: TableSchema) -> set[str]:
    """The names of the data files that snapshots of the tables have or had."""
    name = "SELECT file_path FROM {}.all_data_files"
    found = [lake.sql(name.format(lake.warehouse.name(schema.name))) for schema in schemas]
    return {row.file_path.rpartition("/")[2] for rows in found for row in rows}


def test_a_folder_that_cannot_be_written_fails_and_leaves_no_file(
    lake: Lake, written: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: a data file of several row groups fails in its middle."""
    load(lake, ORDERS, [(1, "one")])
    before = {path.name for path in (lake.folder / "warehouse").rglob("*.parquet")}
    lake.staging.interval(P0, P1, [(ORDERS, [Change("I", NEW, 1, (2, "two"))])])
    data = next((lake.folder / "warehouse").rglob("data"))
    kept = data.rename(data.with_name("kept"))
    data.write_text("not a folder")
    (result,) = lake.merged().tables
    assert result.status == "failed"
    assert result.error is not None
    data.unlink()
    kept.rename(data)
    assert written == []
    assert {path.name for path in (lake.folder / "warehouse").rglob("*.parquet")} == before
    assert lake.one(lake.merged()).status == "applied"
    assert lake.rows(ORDERS) == {(1,): (1, "one"), (2,): (2, "two")}
