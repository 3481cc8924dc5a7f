"""Initial loads by kernels and Arrow: the same rows as by Spark's SQL, and what is refused is loaded by Spark."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from loader.errors import StagedDataError
from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.load import native_load, table_load
from loader.materialise.parquet import row_writer, table_files
from loader.materialise.rules import TableRule
from loader.model.table import Column, TableName, TableSchema
from tests.integration.materialise.kernels.test_native import EVERY, ROWS
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.outage import lose_reply
from tests.integration.materialise.staged_writer import Change, number, position, table

pytestmark = pytest.mark.integration

P0, P1 = position(1, 1000), position(1, 2000)
ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
ORDERS = table("orders", [ID, NAME], ["id"])
EVENTS = table("events", [ID, Column("at", "datetime", size=6)], ["id"])


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether kernels loaded each table."""
    done: list[bool] = []
    work = native_load.write_natively

    def write(*arguments: Any) -> DataFiles | None:
        files = work(*arguments)
        done.append(files is not None)
        return files

    monkeypatch.setattr(table_load, "write_natively", write)
    return done


def load(lake: Lake, schema: TableSchema, rows: list[tuple[Any, ...]], at: str = P0, parts: int = 1) -> None:
    result = lake.one(lake.loaded(lake.staging.load(schema, rows, at, parts)))
    assert (result.status, result.rows_inserted) == ("applied", len(rows))


def files(lake: Lake, schema: TableSchema) -> list[Any]:
    return lake.sql(f"SELECT * FROM {lake.warehouse.name(schema.name)}.files ORDER BY file_path")


def by_pyiceberg(lake: Lake, name: TableName) -> list[dict[str, Any]]:
    """The rows as an independent reader finds them."""
    newest = max(
        (lake.folder / "warehouse" / name.schema / name.table / "metadata").glob("*.metadata.json"),
        key=lambda path: path.stat().st_mtime_ns,
    )
    found: list[dict[str, Any]] = StaticTable.from_metadata(f"file://{newest}").scan().to_arrow().to_pylist()
    return found


@pytest.mark.parametrize("rule", [{}, {"mode": "soft_delete"}, {"mode": "history"}, {"on_misfit": "text"}])
def test_rows_and_column_bounds_are_those_of_spark(
    lake: Lake, native: list[bool], monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any]
) -> None:
    lake.rules = (TableRule(tables=("*",), **rule),)
    copy = TableSchema(TableName("shop", "by_spark"), EVERY.columns, EVERY.key)
    load(lake, EVERY, ROWS, parts=2)
    with monkeypatch.context() as patched:
        patched.setattr(table_files, "row_format", lambda *_: None)
        load(lake, copy, ROWS, parts=2)
    assert native == [True, False]
    assert lake.bag(EVERY.name) == lake.bag(copy.name)
    independent = [by_pyiceberg(lake, schema.name) for schema in (EVERY, copy)]
    assert sorted(map(repr, independent[0])) == sorted(map(repr, independent[1]))
    ((ours,), (theirs,)) = ([file["readable_metrics"] for file in files(lake, schema)] for schema in (EVERY, copy))
    for column in lake.warehouse.session.table(lake.warehouse.name(EVERY.name)).columns:
        for name in ("lower_bound", "upper_bound", "null_value_count", "value_count"):
            assert ours[column][name] == theirs[column][name], (column, name)


def test_a_large_table_becomes_files_with_ranges_of_keys(
    lake: Lake, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FILE_BYTES", "_SMALL_BYTES"):
        monkeypatch.setattr(native_load, name, 10_000)
    monkeypatch.setattr(row_writer, "_GROUP_BYTES", 4_000)
    rows = [(key, f"the name of order {key}") for key in range(1000)]
    load(lake, ORDERS, rows, parts=40)
    assert native == [True]
    found = sorted(files(lake, ORDERS), key=lambda file: file["readable_metrics"]["id"]["lower_bound"])
    ranges = [
        (file["readable_metrics"]["id"]["lower_bound"], file["readable_metrics"]["id"]["upper_bound"]) for file in found
    ]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 999
    assert [low for low, _ in ranges[1:]] == [high + 1 for _, high in ranges[:-1]]
    assert len(found) > 4
    for file in found:
        written = pq.ParquetFile(file["file_path"].removeprefix("file:"))
        assert len(file["split_offsets"]) == written.num_row_groups > 1
        assert file["file_size_in_bytes"] == Path(file["file_path"].removeprefix("file:")).stat().st_size
    assert sorted(lake.rows(ORDERS).values()) == rows


@pytest.mark.parametrize("text", ["a" * 5000, "z" * 5000, "zé" * 2000], ids=["smallest", "largest", "characters"])
@pytest.mark.parametrize("order", [1, -1])
def test_long_values_that_a_row_group_has_no_bounds_for(
    lake: Lake, native: list[bool], monkeypatch: pytest.MonkeyPatch, text: str, order: int
) -> None:
    """The file has two row groups. Their bounds are not those of the file: one of them has none."""
    monkeypatch.setattr(row_writer, "_GROUP_BYTES", 1)
    notes = table("notes", [Column("text", "varchar", charset="utf8mb4"), Column("data", "blob")], ["text"])
    data = text.encode()
    load(lake, notes, [("m", b"m"), (text, data)][::order], parts=2)
    assert native == [True]
    (file,) = files(lake, notes)
    assert len(file["split_offsets"]) == 2
    name = lake.warehouse.name(notes.name)
    for condition in (f"text = '{text}'", f"data = X'{data.hex()}'"):
        assert [row.text for row in lake.sql(f"SELECT text FROM {name} WHERE {condition}")] == [text]
    lake.staging.interval(P0, P1, [(notes, [Change("U", number(1, 1100), 5, (text, b"new"))])])
    assert lake.one(lake.merged()).status == "applied"
    assert lake.rows(notes) == {("m",): ("m", b"m"), (text,): (text, b"new")}


def test_a_second_load_replaces_all_rows(lake: Lake, native: list[bool]) -> None:
    load(lake, ORDERS, [(1, "one"), (2, "two")])
    wider = table("orders", [Column("id", "bigint"), NAME, Column("more", "int")], ["id"])
    load(lake, wider, [(2, "zwei", 5), (2**40, None, None)], P1)
    assert native == [True, True]
    assert lake.rows(wider) == {(2,): (2, "zwei", 5), (2**40,): (2**40, None, None)}
    narrow = table("orders", [ID, NAME], ["id"])
    load(lake, narrow, [(7, "seven")], position(1, 3000))  # the column stays as wide as it was
    assert native == [True, True, True]
    assert lake.rows(narrow) == {(7,): (7, "seven")}


def test_a_misfit_is_loaded_by_spark_and_leaves_no_file(lake: Lake, native: list[bool]) -> None:
    lake.rules = (TableRule(tables=("*",), on_misfit="text"),)
    result = lake.one(
        lake.loaded(lake.staging.load(EVENTS, [(1, "2026-01-01 00:00:00"), (2, "0000-00-00 00:00:00")], P0))
    )
    assert native == [False]
    assert result.misfits == {"at": 1}
    assert [row["at__text"] for row in lake.sql("SELECT at__text FROM lake.shop.events ORDER BY id")] == [
        None,
        "0000-00-00 00:00:00",
    ]
    kept = {Path(file["file_path"]).name for file in files(lake, EVENTS)}
    assert {path.name for path in (lake.folder / "warehouse").rglob("*.parquet")} == kept


def test_a_partitioned_table_is_written_by_spark(lake: Lake, native: list[bool]) -> None:
    load(lake, ORDERS, [(1, "one")])
    lake.sql("ALTER TABLE lake.shop.orders ADD PARTITION FIELD bucket(4, id)")
    load(lake, ORDERS, [(1, "one"), (2, "two")], P1)
    assert native == [True, False]
    assert lake.rows(ORDERS) == {(1,): (1, "one"), (2,): (2, "two")}


@pytest.mark.parametrize("damage", ["changed", "shortened", "lost"])
def test_a_damaged_file_stops_the_table(lake: Lake, native: list[bool], damage: str) -> None:
    load(lake, ORDERS, [(1, "one")])
    key = lake.staging.load(ORDERS, [(1, "one"), (2, "two")], P1)
    (file,) = (lake.folder / "staging" / key).parent.rglob("*.csv")
    if damage == "lost":
        file.unlink()
    else:
        data = file.read_bytes()
        file.write_bytes(data.replace(b"two", b"TWO") if damage == "changed" else data[: data.index(b"\n") + 1])
    (result,) = lake.loaded(key).tables
    assert result.error is not None
    assert result.error["error"] == StagedDataError.__name__
    assert result.error["what"] == ("a staged file is missing" if damage == "lost" else "a staged file has changed")
    assert native == [True]
    assert lake.rows(ORDERS) == {(1,): (1, "one")}
    assert len(files(lake, ORDERS)) == len(list((lake.folder / "warehouse").rglob("*.parquet"))) == 1


def test_a_commit_of_others_makes_the_load_begin_again(
    lake: Lake, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(lake, ORDERS, [(1, "one")])
    others = [lambda: lake.sql("INSERT INTO lake.shop.orders (id, name) VALUES (9, 'of others')")]

    def interfere(point: str) -> None:
        if point == "insert.after" and others:
            others.pop()()

    monkeypatch.setattr(table_load, "failpoint", interfere)
    load(lake, ORDERS, [(1, "one"), (2, "two")], P1)
    assert native == [True, True, True]  # the second one was given up
    assert lake.rows(ORDERS) == {(1,): (1, "one"), (2,): (2, "two")}
    assert len(list((lake.folder / "warehouse").rglob("*.parquet"))) == 3  # with those of the replaced rows
    assert list(lake.metadata(ORDERS).branches) == ["main"]


def test_of_two_loads_at_once_one_adds_the_rows(
    lake: Lake, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other load commits after this one has read the head of main, and before its own commit."""
    lake.rules = (TableRule(tables=("*",), mode="history"),)  # a second commit would add the rows again
    rows = [(1, "one"), (2, "two")]
    key = lake.staging.load(ORDERS, rows, P0)
    monkeypatch.setattr(table_load, "table_lock", lambda *_: nullcontext())  # as on catalogs that need no lock
    original, others = TableMetadata.transaction, [lambda: lake.loaded(key)]

    def transaction(self: TableMetadata) -> Any:
        change = original(self)
        if others:
            assert lake.one(others.pop()()).status == "applied"
        return change

    monkeypatch.setattr(TableMetadata, "transaction", transaction)
    assert lake.one(lake.loaded(key)).status == "already"
    assert native == [True, True]
    assert lake.bag(ORDERS.name, "id", "name") == Counter(rows)
    assert len(lake.metadata(ORDERS).snapshots) == 1
    assert len(list((lake.folder / "warehouse").rglob("*.parquet"))) == 1


def test_a_lost_reply_of_the_catalog_applies_the_load_once(
    lake: Lake, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_reply(monkeypatch)
    lake.rules = (TableRule(tables=("*",), mode="history"),)  # a second commit would add the rows again
    load(lake, ORDERS, [(1, "one"), (2, "two")])
    assert native == [True]
    assert sorted(lake.bag(ORDERS.name, "id", "name").items()) == [((1, "one"), 1), ((2, "two"), 1)]
    assert len(lake.metadata(ORDERS).snapshots) == 1
