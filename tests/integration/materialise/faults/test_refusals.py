"""What must stop a table, by name and without a trace, and never another table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loader.errors import GapError, UsageError
from loader.materialise.collapse import file_checks
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.merge.source_run import materialise
from loader.materialise.rules import TableRule
from loader.materialise.spec import CatalogSettings, MaterialiseResult
from loader.model.table import Column, TableSchema
from loader.schema.evolution import STRICT
from loader.staging.documents import Barrier, TableFilter
from loader.staging.published import Published
from tests.integration.materialise import staged_writer
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, Staging, fold, number, position, table

pytestmark = pytest.mark.integration

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
ORDERS = table("orders", [ID, NAME], ["id"])
ITEMS = table("items", [ID, NAME], ["id"])
P0 = position(1, 1000)


def insert(key: int, at: int = 1100) -> Change:
    return Change("I", number(1, at), 5, (key, "new"))


def barred(seqno: int, at: str, statement: str, tables: tuple[str, ...]) -> Barrier:
    return Barrier(
        seqno=seqno, position=at, statement=statement, database="shop", sql_mode=0, mariadb=False, tables=tables
    )


def test_a_table_that_a_partition_became(both: Lake) -> None:
    """Nothing of the new table is staged: it must be named all the same. A created table got its rows by the log."""
    statements = {
        "CREATE TABLE made (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9))": ("made",),
        "ALTER TABLE made DROP PARTITION p0": ("made",),
        "ALTER TABLE orders CONVERT PARTITION p0 TO TABLE part": ("orders", "part"),
    }
    barriers = [
        barred(number(1, at), f"binlog.000001:{at}", text, tuple(f"shop.{name}" for name in names))
        for at, (text, names) in enumerate(statements.items(), 1200)
    ]
    both.staging.interval(P0, position(1, 2000), [(ITEMS, [Change("I", number(1, 1300), 5, (2, "new"))])], barriers)
    result = both.merged()
    assert {one.table: one.status for one in result.tables} == {
        "shop.items": "applied", "shop.orders": "quarantined", "shop.part": "quarantined"
    }  # fmt: skip
    (error,) = [one.error for one in result.tables if one.table == "shop.part"]
    assert error is not None
    assert error["what"] == "a statement gave rows to table shop.part, which was never loaded"
    assert error["why"] == "CONVERT PARTITION adds rows"
    assert error["hint"].startswith("loader initial-load --table shop.part")


@pytest.fixture
def both(lake: Lake) -> Lake:
    """Two loaded tables, each with one row."""
    keys = [lake.staging.load(schema, [(1, "one")], P0) for schema in (ORDERS, ITEMS)]
    assert lake.loaded(*keys).exit_code == 0
    return lake


def stopped(lake: Lake, result: MaterialiseResult, name: str, kind: str) -> dict[str, Any]:
    """The error of `orders`, which is as it was, while `items` got its record."""
    found = {one.table: one for one in result.tables}
    assert result.exit_code == 4
    record = Published.read(lake.staging.store.get(result.published), result.published)
    assert ("shop.items" in record.tables, name in record.tables, set(record.behind)) == (True, False, {name})
    assert found["shop.items"].status == "applied", found["shop.items"].error
    assert (2,) in lake.rows(ITEMS)
    failed = found[name]
    assert failed.status == "quarantined"
    assert failed.error is not None
    assert failed.error["error"] == kind
    assert name in str(failed.error)
    return failed.error


def staged_for_both(lake: Lake, stop: int = 2000, **more: Any) -> list[Path]:
    manifest = lake.staging.interval(P0, position(1, stop), [(ORDERS, [insert(2)]), (ITEMS, [insert(2)])], **more)
    return [lake.staging.root / file.key for file in manifest.files_of(ORDERS.name)]


def unchanged(lake: Lake) -> bool:
    return lake.rows(ORDERS) == {(1,): (1, "one")} and list(lake.metadata(ORDERS).branches) == ["main"]


@pytest.fixture(params=["by the driver", "by tasks"])
def verified(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files are hashed; by tasks on a cluster, here by those of a local Spark."""
    monkeypatch.setattr(file_checks, "_should_distribute", lambda *_: request.param == "by tasks")


def swap(at: int) -> Barrier:
    """Names are swapped among columns of one type, so that SHOW CREATE TABLE is as before."""
    statement = "ALTER TABLE orders CHANGE name note TEXT, CHANGE note name TEXT AFTER id"
    return barred(number(1, at), position(1, at), statement, ("shop.orders",)).model_copy(update={"sql_mode": STRICT})


TWO_NAMES = table(
    "orders", [ID, Column("name", "text", charset="utf8mb4"), Column("note", "text", charset="utf8mb4")], ["id"]
)


@pytest.mark.parametrize("before", ["", "TRUNCATE TABLE orders"])
def test_a_table_that_was_altered_while_it_was_loaded(lake: Lake, before: str) -> None:
    """Rows that were read after the statement are in the new names already; the log would swap them again."""
    rows = [(1, "read before", "x"), (2, "y", "read after")]
    keys = [lake.staging.load(TWO_NAMES, rows, P0, exact=position(1, 1500)), lake.staging.load(ITEMS, [], P0)]
    assert lake.loaded(*keys).exit_code == 0
    emptied = [barred(number(1, 1300), position(1, 1300), before, ("shop.orders",))] if before else []
    barriers = (*emptied, swap(1400))
    lake.staging.interval(P0, position(1, 2000), [(ITEMS, [insert(2)])], barriers=barriers)
    result = lake.merged()
    if before:
        assert (result.exit_code, lake.rows(TWO_NAMES)) == (0, {})
        return
    error = stopped(lake, result, "shop.orders", "UnsupportedError")
    assert error["what"] == "the table was altered while its initial load read it"
    assert error["hint"].startswith("loader initial-load --table shop.orders --again; ")
    assert lake.rows(TWO_NAMES) == {(row[0],): row for row in rows}
    again = lake.staging.load(TWO_NAMES, [(1, "x", "read again")], position(1, 1450), exact=position(1, 1460))
    assert lake.loaded(again).exit_code == 0
    assert lake.rows(TWO_NAMES) == {(1,): (1, "x", "read again")}


def test_a_table_that_was_altered_after_it_was_loaded(lake: Lake) -> None:
    assert lake.loaded(lake.staging.load(TWO_NAMES, [(1, "a", "b")], P0, exact=position(1, 1399))).exit_code == 0
    lake.staging.interval(P0, position(1, 2000), [], barriers=(swap(1400),))
    assert lake.merged().exit_code == 0
    assert lake.rows(TWO_NAMES) == {(1,): (1, "b", "a")}


def test_a_missing_file(both: Lake, verified: None) -> None:
    (file,) = staged_for_both(both)
    file.unlink()
    error = stopped(both, both.merged(), "shop.orders", "StagedDataError")
    assert error["what"] == "a staged file is missing"
    assert error["where"]["file"].endswith(".csv")
    assert unchanged(both)


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b.replace(b"new", b"old"), lambda b: b""])
def test_a_changed_file(both: Lake, change: Any, verified: None) -> None:
    (file,) = staged_for_both(both)
    file.write_bytes(change(file.read_bytes()))
    error = stopped(both, both.merged(), "shop.orders", "StagedDataError")
    assert error["what"] == "a staged file has changed"
    assert unchanged(both)


def test_a_file_that_was_purged(both: Lake) -> None:
    (file,) = staged_for_both(both)
    file.unlink()
    (file.parents[4] / "purged.json").write_text("{}")
    error = stopped(both, both.merged(), "shop.orders", "StagedDataError")
    assert error["what"] == "a staged file was purged"
    assert unchanged(both)


def test_a_file_that_nobody_named_is_not_read(both: Lake) -> None:
    (file,) = staged_for_both(both)
    file.with_name("part-000001-0009.csv").write_bytes(file.read_bytes().replace(b",2,", b",3,"))
    assert both.merged().exit_code == 0
    assert set(both.rows(ORDERS)) == {(1,), (2,)}


def test_lines_that_the_manifest_counts_otherwise(both: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Staging.part

    def one_row_less(self: Staging, folder: str, schema: Any, changes: Any, *more: Any) -> Any:
        entry = original(self, folder, schema, changes, *more)
        return entry.model_copy(update={"inserts": entry.inserts + 1}) if schema is ORDERS else entry

    monkeypatch.setattr(Staging, "part", one_row_less)
    staged_for_both(both)
    error = stopped(both, both.merged(), "shop.orders", "StagedDataError")
    assert "2 in the manifests, 1 in the files" in error["why"]
    assert unchanged(both)


@pytest.fixture(params=["{line},3\n", "I,x{line}\n", '"{line}\n'])
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the lines of `orders` are not in the format."""
    original = staged_writer.line

    def other(schema: TableSchema, change: Change) -> str:
        line = original(schema, change)
        return request.param.format(line=line.rstrip("\n")) if schema is ORDERS else line

    monkeypatch.setattr(staged_writer, "line", other)


def test_lines_of_another_form(both: Lake, wrong: None) -> None:
    staged_for_both(both)
    error = stopped(both, both.merged(), "shop.orders", "StagedDataError")
    assert error["what"] == "a staged file is not in the staging format"
    assert unchanged(both)


def test_lines_of_another_form_in_an_initial_load(lake: Lake, wrong: None) -> None:
    (result,) = lake.loaded(lake.staging.load(ORDERS, [(1, "one"), (2, "two")], P0)).tables
    assert result.error is not None
    assert result.error["what"] == "a staged file is not in the staging format"
    assert lake.rows(ORDERS) == {}


INSERT = Change("I", number(1, 1100), 5, (7, None), absent="02")
OF_NO_ROW = Change("U", number(1, 1100), 5, (7, None), absent="02")
MOVED = [
    Change("D", number(1, 1100), 5, (7, None), absent="02"),
    Change("I", number(1, 1100), 9, (8, None), absent="06"),
]


@pytest.mark.parametrize(
    ("records", "what"),
    [
        ([INSERT], "an insert leaves columns out"),
        ([OF_NO_ROW], "a change leaves columns out, and its row does not exist"),
        ([Change("D", number(1, 1050), 5, (1, "one")), replace(OF_NO_ROW, values=(1, None))], "a change leaves"),
        (MOVED, "a change leaves columns out, and its row does not exist"),
        ([MOVED[0], replace(MOVED[1], absent="02")], "an insert leaves columns out"),
    ],
)
def test_an_incomplete_row_image(both: Lake, records: list[Change], what: str) -> None:
    both.staging.interval(P0, position(1, 2000), [(ORDERS, records), (ITEMS, [insert(2)])])
    error = stopped(both, both.merged(), "shop.orders", "UnsupportedError")
    assert error["what"].startswith(what)
    assert error["why"].startswith(f"columns name of the row with {{'id': '{records[-1].values[0]}'}}")
    assert error["where"] == {"table": "shop.orders", "position": position(1, 1100)}
    assert unchanged(both)


@pytest.mark.parametrize(
    ("unlogged", "what"),
    [
        ('["name"]', "the log leaves a generated column out of changes"),
        ("", "it is not known which of them are generated"),
        ("[]", "MariaDB also leaves out columns that changed"),
    ],
)
def test_a_column_that_the_log_may_leave_out_though_it_changes(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, unlogged: str, what: str
) -> None:
    monkeypatch.setattr(staged_writer, "IDENTITY", staged_writer.IDENTITY.model_copy(update={"kind": "mariadb"}))
    both = Lake(lake.spark, lake.folder / "mariadb")
    assert both.loaded(*(both.staging.load(schema, [(1, "one")], P0) for schema in (ORDERS, ITEMS))).exit_code == 0
    change = (
        f"SET TBLPROPERTIES ('loader.unlogged' = '{unlogged}')"
        if unlogged
        else "UNSET TBLPROPERTIES ('loader.unlogged')"
    )
    both.sql(f"ALTER TABLE {both.warehouse.name(ORDERS.name)} {change}")
    partial = replace(OF_NO_ROW, values=(1, None))
    both.staging.interval(P0, position(1, 2000), [(ORDERS, [partial]), (ITEMS, [insert(2)])])
    assert what in stopped(both, both.merged(), "shop.orders", "UnsupportedError")["what"]
    assert unchanged(both)


def test_a_schema_that_no_statement_made_stops_its_table(both: Lake) -> None:
    new = table("orders", [Column("id", "bigint"), Column("title", "varchar", charset="utf8mb4")], ["id"])
    both.staging.interval(P0, position(1, 2000), [(new, [insert(2)]), (ITEMS, [insert(2)])])
    stopped(both, both.merged(), "shop.orders", "UnsupportedError")
    assert unchanged(both)


def test_a_statement_whose_effect_the_log_does_not_hold_stops_its_table(both: Lake) -> None:
    statement = "ALTER TABLE orders ADD at DATETIME DEFAULT CURRENT_TIMESTAMP"
    staged_for_both(both, barriers=[barred(number(1, 1500), position(1, 1500), statement, ("shop.orders",))])
    error = stopped(both, both.merged(), "shop.orders", "UnsupportedError")
    assert error["hint"].startswith("loader initial-load --table shop.orders --again")
    assert unchanged(both)


def test_a_statement_that_cannot_be_read_stops_every_table_it_may_mean(both: Lake) -> None:
    barrier = barred(number(1, 1000), P0, "FROBNICATE EVERYTHING", ())
    both.staging.interval(position(1, 500), position(1, 1050), barriers=[barrier])
    assert both.merged().exit_code == 0
    late = barrier.model_copy(update={"seqno": number(1, 1060), "position": position(1, 1060)})
    both.staging.interval(position(1, 1050), position(1, 2000), barriers=[late])
    assert [one.status for one in both.merged().tables] == ["quarantined"] * 2


def test_changes_of_a_table_that_was_never_loaded(both: Lake) -> None:
    other = table("other", [ID, NAME], ["id"])
    both.staging.interval(P0, position(1, 2000), [(other, [insert(2)]), (ITEMS, [insert(2)])])
    error = stopped(both, both.merged(), "shop.other", "DataError")
    assert error["what"] == "changes of table shop.other are staged, but it was never loaded"
    assert error["hint"].startswith(
        "loader initial-load --table shop.other; then, unless the table was loaded again: loader release"
    )
    assert both.warehouse.metadata(other.name) is None
    both.loaded(both.staging.load(other, [(2, "new")], position(1, 2000)))
    assert both.merged().exit_code == 0


def test_a_hole_between_intervals(both: Lake) -> None:
    both.staging.interval(P0, position(1, 1200), [(ORDERS, [insert(2)])])
    both.staging.interval(position(1, 1300), position(1, 2000), [(ORDERS, [insert(3, at=1400)])])
    for result in both.merged().tables:
        assert result.error is not None
        assert (result.error["error"], result.error["where"]["seqno"]) == ("GapError", str(number(1, 1200)))
    assert unchanged(both)


def test_an_interval_that_is_planned_but_not_extracted(both: Lake) -> None:
    both.staging.plan(P0, position(1, 2000))
    with pytest.raises(GapError, match="no extracted interval stops"):
        both.merged(number(1, 2000))
    assert both.merged().tables == ()


def test_a_table_that_was_not_captured_for_a_while(both: Lake) -> None:
    less = TableFilter(include=("shop.*",), exclude=("shop.orders",))
    both.staging.interval(P0, position(1, 1200), [(ITEMS, [insert(2)])], captured=less)
    (items,) = both.merged().tables
    assert items.table == "shop.items"
    both.staging.interval(position(1, 1200), position(1, 2000), [(ORDERS, [insert(3, at=1400)])])
    found = {one.table: one for one in both.merged().tables}
    assert found["shop.orders"].error["error"] == "GapError"
    assert found["shop.items"].status == "unchanged"
    both.loaded(both.staging.load(ORDERS, [(1, "one"), (3, "new")], position(1, 1500)))
    assert both.merged().exit_code == 0


def test_a_table_of_somebody_else(both: Lake) -> None:
    name = both.warehouse.name(ORDERS.name)
    both.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('loader.source' = 'another')")
    staged_for_both(both)
    error = stopped(both, both.merged(), "shop.orders", "DataError")
    assert "another" in error["what"]
    both.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('loader.source')")
    (again,) = both.loaded(both.staging.load(ORDERS, [(7, "x")], position(1, 1900))).tables
    assert again.error is not None
    assert "not made by the loader" in again.error["what"]
    assert unchanged(both)


def test_a_column_with_the_name_of_a_text_column(lake: Lake) -> None:
    taken = table("taken", [ID, Column("day", "date"), Column("DAY__text", "int")], ["id"])
    lake.rules = (TableRule(tables=("*",), on_misfit="text"),)
    (result,) = lake.loaded(lake.staging.load(taken, [(1, None, 1)], P0)).tables
    assert result.error is not None
    assert result.error["error"] == "UnsupportedError"
    assert result.table in str(result.error["where"])


def test_a_table_with_the_name_of_a_folder_outside_stays_inside(lake: Lake) -> None:
    path = table("../../escape", [ID], ["id"])
    assert lake.loaded(lake.staging.load(path, [(1,)], P0)).exit_code == 0
    assert lake.rows(path) == {(1,): (1,)}
    assert (lake.folder / "warehouse" / "shop" / "!2e!2e!2f!2e!2e!2fescape").is_dir()
    assert not list(lake.folder.parent.rglob("escape"))


def test_an_expired_applied_position_is_no_new_table(both: Lake) -> None:
    name = both.warehouse.name(ORDERS.name)
    both.sql(f"INSERT INTO {name} VALUES (5, 'by hand', 0, NULL)")
    both.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', retain_last => 1,"
        " older_than => TIMESTAMP '2999-01-01 00:00:00')"
    )
    staged_for_both(both)
    error = stopped(both, both.merged(), "shop.orders", "DataError")
    assert "expired" in error["what"]


def test_a_hadoop_catalog_on_an_object_store(both: Lake) -> None:
    catalog = CatalogSettings(type="hadoop", warehouse="s3a://bucket/lake")
    with pytest.raises(UsageError, match="loses commits"):
        Warehouse(both.spark, catalog)
    spec = both.merge_spec().model_copy(update={"catalog": catalog})
    with pytest.raises(UsageError):
        materialise(both.spark, spec)


def test_an_older_load_is_already_there_and_a_newer_one_replaces_all_rows(both: Lake) -> None:
    (older,) = both.loaded(both.staging.load(ORDERS, [(8, "old")], position(1, 900))).tables
    assert (older.status, older.applied_seqno) == ("already", number(1, 1000))
    both.staging.interval(P0, position(1, 2000), [(ORDERS, [insert(2)])])
    both.merged(number(1, 2000))
    (newer,) = both.loaded(both.staging.load(ORDERS, [(9, "fresh")], position(1, 2500))).tables
    assert newer.status == "applied"
    assert both.rows(ORDERS) == {(9,): (9, "fresh")}
    changes = [insert(3, at=2400), insert(4, at=2600)]
    both.staging.interval(position(1, 2000), position(1, 3000), [(ORDERS, changes)])
    both.merged()
    assert both.rows(ORDERS) == fold(ORDERS, [(9, "fresh")], number(1, 2500), changes)


def test_an_empty_initial_load(lake: Lake) -> None:
    folder = lake.staging.load(ORDERS, [], P0)
    assert lake.one(lake.loaded(folder)).status == "applied"
    assert lake.one(lake.loaded(folder)).status == "already"
    lake.staging.interval(P0, position(1, 2000), [(ORDERS, [insert(2)])])
    lake.one(lake.merged())
    assert set(lake.rows(ORDERS)) == {(2,)}


def test_a_load_whose_manifest_counts_otherwise(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Staging.part

    def one_row_less(self: Staging, *arguments: Any) -> Any:
        entry = original(self, *arguments)
        return entry.model_copy(update={"inserts": entry.inserts + 1})

    monkeypatch.setattr(Staging, "part", one_row_less)
    (result,) = lake.loaded(lake.staging.load(ORDERS, [(1, "one")], P0)).tables
    assert result.error is not None
    assert (result.error["error"], result.error["why"]) == ("StagedDataError", "2 in the manifest, 1 in the files")
    assert lake.rows(ORDERS) == {}
    assert lake.metadata(ORDERS).applied is None
