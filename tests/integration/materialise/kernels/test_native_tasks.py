"""What kernels in Spark tasks make of staged records is what Spark SQL makes of them."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from loader.errors import StagedDataError
from loader.materialise.collapse import last_versions, native, native_tasks
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.load import native_load, row_insert
from loader.materialise.merge import table_merge
from loader.materialise.parquet import task_files
from loader.materialise.plan.merge_plan import Work
from loader.materialise.rules import TableRule
from loader.model.table import TableName, TableSchema
from tests.integration.materialise.kernels.test_native import EVERY, PLAIN, ROWS, content, mixed, work_of
from tests.integration.materialise.kernels.test_native_load import by_pyiceberg
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, Staging, number, position
from tests.integration.materialise.test_table_replay import replayed

pytestmark = pytest.mark.integration

P0, P1, NEW = position(1, 1000), position(1, 2000), number(1, 1100)
LEFT = "by Spark SQL"
UNUSUAL = {
    "no date": [Change("I", NEW, 0, (1, "0000-00-00", 1))],
    "left out": [Change("U", NEW, 0, (1, None, None), absent="02")],
    "no key": [Change("I", NEW, 0, (None, None, 1))],
    "too large": [Change("I", NEW, 0, (1, None, 2**31))],
}


def work_in_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load and merge in tasks as on a cluster, with a task for each file of a merge."""
    for module in (last_versions, native, native_tasks, native_load, row_insert):
        monkeypatch.setattr(module, "on_one_machine", lambda _: False)
    monkeypatch.setattr(native_tasks, "_FEWEST_BYTES", 1)
    monkeypatch.setattr(native_tasks, "_MOST_BYTES", 1)


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    work_in_tasks(monkeypatch)


def by_tasks(spark: SparkSession, staging: Staging, work: Work) -> Changes | None:
    return native_tasks.collapse_in_tasks(spark, staging.store, work)


def by_sql(spark: SparkSession, staging: Staging, work: Work) -> Changes:
    return last_versions._collapsed(last_versions.read_records(spark, staging.store, work), work, None)


@pytest.mark.parametrize("rule", [{}, {"mode": "soft_delete"}, {"on_misfit": "text"}, {"on_misfit": "null"}])
@pytest.mark.parametrize("last", [number(1, 3000), number(1, 1000)], ids=["some new", "none new"])
def test_both_ways_collapse_to_the_same(spark: SparkSession, tmp_path: Path, rule: dict[str, Any], last: int) -> None:
    staging = Staging(tmp_path)
    work = work_of(staging, EVERY, [change for change in mixed() if change.seqno < last], **rule)
    ours, theirs = by_tasks(spark, staging, work), by_sql(spark, staging, work)
    assert ours is not None
    assert content(ours, work) == content(theirs, work)
    assert ours.frame.rdd.getNumPartitions() == len(work.files)
    assert ours.keys == (4 if last > number(1, 1000) else 0)
    ours.release()
    theirs.release()


@pytest.mark.parametrize("changes", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_is_for_spark_sql(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: list[Change]
) -> None:
    staging = Staging(tmp_path)
    with caplog.at_level(logging.INFO):
        assert by_tasks(spark, staging, work_of(staging, PLAIN, changes)) is None
    assert LEFT in caplog.text


def test_records_that_the_manifest_does_not_count(spark: SparkSession, tmp_path: Path) -> None:
    staging = Staging(tmp_path)
    work = work_of(staging, PLAIN, [Change("I", NEW, 0, (1, None, 1)), Change("I", NEW, 1, (2, None, 1))], parts=1)
    (group,) = work.file_groups
    wrong = tuple(file.model_copy(update={"inserts": 1, "deletes": 1}) for file in group.files)
    with pytest.raises(StagedDataError, match="do not hold the records that their manifest counts"):
        last_versions.collapse(spark, staging.store, replace(work, file_groups=(replace(group, files=wrong),)))


def test_a_changed_file_of_a_merge_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The error of the task is raised, and not Spark's exception, which would be retried."""
    staging = Staging(tmp_path)
    work = work_of(staging, PLAIN, [Change("I", NEW, 0, (1, None, 1)), Change("I", NEW, 1, (2, None, 1))], parts=2)
    file = max(Path(tmp_path).rglob("*.csv"))
    file.write_bytes(file.read_bytes().replace(b",2,", b",3,", 1))
    with pytest.raises(StagedDataError, match="a staged file has changed"):
        last_versions.collapse(spark, staging.store, work)


@pytest.mark.parametrize("rule", [{}, {"mode": "soft_delete"}, {"mode": "history"}, {"on_misfit": "text"}])
def test_all_ways_load_the_same(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, rule: dict[str, Any]
) -> None:
    """Tasks write files next to the staging area. Elsewhere Spark writes the rows that tasks or Spark SQL read."""
    lake.rules = (TableRule(tables=("*",), **rule),)
    monkeypatch.setattr(native_load, "TASK_BYTES", 1)
    monkeypatch.setattr(row_insert, "TASK_BYTES", 1)
    schemas = [TableSchema(TableName("shop", name), EVERY.columns, EVERY.key) for name in ("files", "rows", "by_sql")]

    def load(schema: TableSchema) -> str:
        caplog.clear()
        with caplog.at_level(logging.INFO):
            assert lake.one(lake.loaded(lake.staging.load(schema, ROWS, P0, 2))).rows_inserted == len(ROWS)
        return caplog.text

    assert "loaded by Spark" not in load(schemas[0])
    monkeypatch.setattr(task_files, "sibling_folder", lambda *_: None)
    assert "loaded by Spark: the warehouse is not next to the staging area" in (found := load(schemas[1]))
    assert LEFT not in found
    monkeypatch.setattr(row_insert, "on_one_machine", lambda _: True)
    load(schemas[2])
    bags = [lake.bag(schema.name) for schema in schemas]
    assert bags[0] == bags[1] == bags[2]
    independent = [sorted(map(repr, by_pyiceberg(lake, schema.name))) for schema in schemas]
    assert independent[0] == independent[1] == independent[2]


def test_tasks_write_a_data_file_for_each_group_of_staged_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_load, "TASK_BYTES", 1)
    rows = [(key, None, key) for key in range(6)]
    lake.one(lake.loaded(lake.staging.load(PLAIN, rows, P0, 3)))
    found = lake.sql(f"SELECT * FROM {lake.warehouse.name(PLAIN.name)}.files ORDER BY file_path")
    assert [file.record_count for file in found] == [2, 2, 2]
    assert [(file.readable_metrics.k.lower_bound, file.readable_metrics.k.upper_bound) for file in found] == [
        (0, 1), (2, 3), (4, 5),
    ]  # fmt: skip
    paths = [Path(file.file_path.removeprefix("file:")) for file in found]
    assert [file.file_size_in_bytes for file in found] == [path.stat().st_size for path in paths]
    assert {oct(path.stat().st_mode) for path in paths} == {"0o100644"}


def test_a_load_that_is_unusual_is_for_spark_sql(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.rules = (TableRule(tables=("*",), on_misfit="text"),)
    rows = [(1, "2026-01-01", 1), (2, "0000-00-00", 2)]
    with caplog.at_level(logging.INFO):
        result = lake.one(lake.loaded(lake.staging.load(PLAIN, rows, P0, 2)))
    assert LEFT in caplog.text
    assert (result.rows_inserted, result.misfits) == (2, {"d": 1})
    found = by_pyiceberg(lake, PLAIN.name)
    assert sorted((row["k"], row["d__text"]) for row in found) == [(1, None), (2, "0000-00-00")]


def test_a_load_without_a_key_value_is_refused(lake: Lake) -> None:
    (result,) = lake.loaded(lake.staging.load(PLAIN, [(1, None, 1), (None, None, 2)], P0, 2)).tables
    assert result.error is not None
    assert result.error["what"] == "1 value does not fit the column's type int"
    assert result.error["why"] == "for example NULL in the key"


def test_a_changed_file_of_a_load_is_refused(lake: Lake) -> None:
    manifest = lake.staging.load(PLAIN, [(1, None, 1), (2, None, 2)], P0, 1)
    (file,) = lake.folder.rglob("*.csv")
    file.write_bytes(file.read_bytes().replace(b",2\n", b",3\n"))
    (result,) = lake.loaded(manifest).tables
    assert result.error is not None
    assert result.error["what"] == "a staged file has changed"


@pytest.mark.parametrize("parts", [1, 2])
def test_a_file_that_changes_while_its_rows_are_kept_is_refused(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Spark has lost the rows, with an executor, and reads the file again."""
    lake.one(lake.loaded(lake.staging.load(PLAIN, [(key, None, key) for key in range(6)], P0, 3)))
    changes = [Change("I", NEW, 0, (11, None, 1)), Change("I", NEW, 1, (12, None, 2))]
    lake.staging.interval(P0, P1, [(PLAIN, changes)], parts=parts)
    (file,) = (file for file in lake.folder.rglob("*.csv") if b",12," in file.read_bytes())
    merge = table_merge._merge

    def merge_changed(*arguments: Any) -> Any:
        file.write_bytes(file.read_bytes().replace(b",12,", b",11,"))
        for rows in cast("Any", spark.sparkContext)._jsc.getPersistentRDDs().values():
            rows.unpersist(True)
        return merge(*arguments)

    monkeypatch.setattr(table_merge, "_merge", merge_changed)
    (result,) = lake.merged().tables
    assert result.error is not None
    assert (result.error["error"], result.error["what"]) == ("StagedDataError", "a staged file has changed")
    assert sorted(row["k"] for row in by_pyiceberg(lake, PLAIN.name)) == list(range(6))


def test_a_merge(lake: Lake) -> None:
    """Changed, deleted and new rows, merged twice."""
    lake.one(lake.loaded(lake.staging.load(PLAIN, [(key, None, key) for key in range(6)], P0, 3)))
    changes = [Change("D", NEW, 0, (1, None, 1)), Change("U", NEW, 1, (2, "2026-01-01", 3))]
    changes += [Change("I", NEW + place, place, (key, None, 9)) for place, key in enumerate((7, 8, 1), 2)]
    lake.staging.interval(P0, P1, [(PLAIN, changes)], parts=3)
    result = lake.one(lake.merged())
    assert (result.inserts, result.updates, result.deletes) == (3, 1, 1)
    values = {row["k"]: row["v"] for row in by_pyiceberg(lake, PLAIN.name)}
    assert values == {0: 0, 1: 9, 2: 3, 3: 3, 4: 4, 5: 5, 7: 9, 8: 9}
    assert lake.one(lake.merged()).status == "already"


@pytest.mark.parametrize("until", [0, number(1, 1300)], ids=["to the end", "to an earlier position"])
def test_a_replay_corrects_only_rows_that_differ(lake: Lake, until: int) -> None:
    """A DELETE by all changed keys would remove the rows that are right."""
    lake.one(lake.loaded(lake.staging.load(PLAIN, [(key, None, key) for key in range(6)], P0, 3)))
    changes = [Change("U", NEW + place, place, (key, None, 10 + key)) for place, key in enumerate((1, 2, 3))]
    changes += [Change("U", number(1, 1500), 4, (4, None, 14))]
    lake.staging.interval(P0, P1, [(PLAIN, changes)], parts=2)
    lake.one(lake.merged())
    before = by_pyiceberg(lake, PLAIN.name)
    lake.sql(f"UPDATE {lake.warehouse.name(PLAIN.name)} SET v = -1 WHERE k = 2")
    (found,) = replayed(lake, number(1, 1000), until=until, publish=True).tables
    assert (found.status, found.inserts, found.updates, found.deletes, found.error) == ("published", 0, 1, 0, None)
    after = by_pyiceberg(lake, PLAIN.name)
    assert sorted((row["k"], row["v"]) for row in after) == sorted((row["k"], row["v"]) for row in before)
