"""Replays on a real server, most of them of tables that were loaded again because the log lacks changes."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.errors import DataError, UsageError
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.jobs.replay_job import replay
from loader.materialise.rules import TableRule
from loader.materialise.spec import TableReplay
from loader.model.table import TableName
from loader.pipeline.reports.source_status import status
from loader.staging.documents import TableFilter
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1),(2,1)", "CREATE TABLE u LIKE t")
    live.load()
    return live


def replayed(source: LiveSource, table: str, since: str = "begin") -> TableReplay:
    start = pipeline.find_replay_start(source.settings, since)
    job = pipeline.replay_job(source.settings, start.seqno, (f"{source.database}.{table}",), publish=True)
    (found,) = replay(source.spark, cast("Any", job.spec)).tables
    assert found.error is None, found.error
    return found


def warehouse_table(source: LiveSource, table: str) -> tuple[Warehouse, str]:
    warehouse = Warehouse(source.spark, source.settings.catalog)
    return warehouse, warehouse.name(TableName(source.database, table))


def check_correct_after_load(source: LiveSource) -> None:
    """Load t again and merge more. A replay from `begin` must find it correct, and repair damage since the load."""
    source.load_again("t")
    source.run("INSERT INTO t VALUES (10,10)")
    source.delta()
    assert source.differences() == []
    found = replayed(source, "t")
    assert (found.status, found.note.endswith(" on, where it was loaded")) == ("same", True)
    assert source.differences() == []
    warehouse, name = warehouse_table(source, "t")
    warehouse.session.sql(f"DELETE FROM {name} WHERE id = 10")
    assert replayed(source, "t").inserts == 1
    assert source.differences() == []


def test_a_table_that_was_restored_without_logging(source: LiveSource) -> None:
    source.run("TRUNCATE t")
    source.delta()
    source.run("SET sql_log_bin = 0", "INSERT INTO t VALUES (1,1),(2,1)", "SET sql_log_bin = 1")
    source.run("INSERT INTO u VALUES (1,1)")
    source.delta()
    check_correct_after_load(source)


@pytest.mark.sweep
def test_rows_that_were_changed_without_logging(source: LiveSource) -> None:
    source.run("UPDATE t SET v = 2")
    source.delta()
    source.run("SET sql_log_bin = 0", "UPDATE t SET v = 3 WHERE id = 1", "DELETE FROM t WHERE id = 2")
    check_correct_after_load(source)


@pytest.mark.sweep
def test_rows_of_a_skipped_transaction(source: LiveSource) -> None:
    source.run("UPDATE t SET v = 2")
    source.delta()
    place = status(source.settings).log_end
    source.run("BEGIN", "UPDATE t SET v = 3 WHERE id = 1", "DELETE FROM t WHERE id = 2", "COMMIT")
    pipeline.skip_transaction(source.settings, place, (), reason="poison", by="ann")
    source.run("INSERT INTO t VALUES (9,9)")
    source.delta()
    assert source.differences() == ["t"]
    check_correct_after_load(source)


@pytest.mark.sweep
def test_a_table_that_was_excluded_for_a_while(source: LiveSource) -> None:
    source.run("UPDATE t SET v = 2")
    source.delta()
    everything = source.settings
    some = TableFilter(include=everything.tables.include, exclude=(f"{source.database}.t",))
    source.settings = everything.model_copy(update={"tables": some})
    source.run("UPDATE t SET v = 3 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO u VALUES (1,1)")
    source.delta()
    source.settings = everything
    check_correct_after_load(source)


@pytest.mark.sweep
def test_marked_rows_that_a_load_replaced_do_not_come_back(live: LiveSource) -> None:
    rule = TableRule(tables=(f"{live.database}.t",), mode="soft_delete")
    live.settings = live.settings.model_copy(update={"rules": (rule,)})
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1),(2,1)")
    live.load()
    live.run("DELETE FROM t WHERE id = 2")
    live.delta()
    live.load_again("t")
    live.run("INSERT INTO t VALUES (3,1)")
    live.delta()
    before = live.warehouse_rows("t")
    assert replayed(live, "t").status == "same"
    assert live.warehouse_rows("t") == before


@pytest.mark.sweep
def test_a_table_that_the_log_emptied_at_the_end(source: LiveSource) -> None:
    source.run("UPDATE t SET v = 2", "TRUNCATE t")
    source.delta()
    warehouse, name = warehouse_table(source, "t")
    warehouse.session.sql(f"INSERT INTO {name} VALUES (7, 7, 0, NULL)")
    assert source.differences() == ["t"]
    assert replayed(source, "t").deletes == 1
    assert source.differences() == []


@pytest.mark.sweep
def test_a_place_after_everything_that_was_read_is_refused_and_the_hint_works(source: LiveSource) -> None:
    source.run("UPDATE t SET v = 2")
    source.delta()
    warehouse, name = warehouse_table(source, "t")
    warehouse.session.sql(f"UPDATE {name} SET v = 99")
    with pytest.raises(DataError, match="not read up to that position") as refused:
        pipeline.find_replay_start(source.settings, "binlog.000999:4")
    named = refused.value.hint.removeprefix("name a position up to ").partition(";")[0]
    assert replayed(source, "t", named).status == "same"
    assert replayed(source, "t").updates == 2
    assert source.differences() == []


@pytest.mark.sweep
def test_a_quarantined_table_that_the_log_created_is_corrected_and_maintained(source: LiveSource) -> None:
    source.run("CREATE TABLE bag (n INT)", "INSERT INTO bag VALUES (1),(2),(3)")
    source.delta()
    place = status(source.settings).applied
    warehouse, name = warehouse_table(source, "bag")
    warehouse.session.sql(f"DELETE FROM {name} WHERE n = 2")
    source.run("DELETE FROM bag WHERE n = 2")
    assert source.statuses(source.delta())["bag"] == "quarantined"
    assert replayed(source, "bag", place).status == "published"
    done = maintain(source.spark, cast("Any", pipeline.maintain_job(source.settings).spec))
    assert [one.error for one in done.tables if one.table.endswith(".bag")] == [None]
    pipeline.release(source.settings, f"{source.database}.bag")
    source.run("INSERT INTO u VALUES (1,1)")
    source.delta()
    assert source.differences() == []


@pytest.mark.sweep
def test_tables_that_a_person_removed_from_the_warehouse_do_not_count(source: LiveSource) -> None:
    source.run(
        "CREATE TABLE w LIKE u", "INSERT INTO w VALUES (1,1)", "UPDATE t SET v = 2", "INSERT INTO u VALUES (1,1)"
    )
    source.load("w")
    source.delta()
    some = TableFilter(include=source.settings.tables.include, exclude=(f"{source.database}.w",))
    source.settings = source.settings.model_copy(update={"tables": some})
    source.run("DROP TABLE t", "INSERT INTO u VALUES (2,2)")
    source.delta()
    for table in ("t", "w"):  # the log dropped one of them, and the other is excluded
        warehouse, name = warehouse_table(source, table)
        warehouse.session.sql(f"DROP TABLE {name}")
    source.run("INSERT INTO u VALUES (3,3)")
    source.delta()
    done = maintain(source.spark, cast("Any", pipeline.maintain_job(source.settings).spec))
    assert [(one.table, one.error) for one in done.tables] == [(f"{source.database}.u", None)]
    job = pipeline.replay_job(source.settings, pipeline.find_replay_start(source.settings, "begin").seqno)
    found = replay(source.spark, cast("Any", job.spec)).tables
    assert [(one.table, one.status) for one in found] == [(f"{source.database}.u", "same")]


@pytest.mark.sweep
def test_a_table_that_the_warehouse_does_not_have_is_refused_next_to_others(source: LiveSource) -> None:
    source.run("UPDATE t SET v = 2")
    source.delta()
    start = pipeline.find_replay_start(source.settings, "begin")
    job = pipeline.replay_job(source.settings, start.seqno, (f"{source.database}.t", f"{source.database}.tt"))
    with pytest.raises(UsageError, match="no such table in the warehouse") as refused:
        replay(source.spark, cast("Any", job.spec))
    assert refused.value.why.startswith(f"{source.database}.tt matches none of: {source.database}.t, ")
