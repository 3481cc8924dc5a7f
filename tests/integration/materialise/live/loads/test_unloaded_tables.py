"""Tables of real servers whose creation was not read, or which have no rows in the warehouse: nothing is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from loader import pipeline
from loader.initial_load.run import stage_tables
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.load_run import load
from loader.materialise.spec import MaterialiseResult
from loader.model.table import TableName
from loader.spark.workers import Threads
from loader.staging.documents import TableFilter
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration

LOST = "the table is gone from the warehouse"
NEVER_LOADED = "changes of table {} are staged, but it was never loaded"
CREATED = "CREATE TABLE t (id INT PRIMARY KEY)"


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    """A source with a loaded table `u`."""
    live.run("CREATE TABLE u (id INT PRIMARY KEY)")
    live.load()
    return live


def without(source: LiveSource, table: str, *statements: str) -> None:
    """Run statements, and apply them while a table is excluded."""
    everything = source.settings
    captured = TableFilter(include=everything.tables.include, exclude=(f"{source.database}.{table}",))
    source.settings = everything.model_copy(update={"tables": captured})
    source.run(*statements)
    assert source.delta().published
    source.settings = everything


def delta(source: LiveSource, *statements: str) -> tuple[MaterialiseResult, list[str]]:
    """Run statements and a delta. Return its result, and the tables that it names as not loaded."""
    listed = pipeline.list_tables(source.settings)
    source.run(*statements)
    result = source.delta()
    return result, [one.table.partition(".")[2] for one in pipeline.find_unloaded(source.settings, listed)]


def errors(result: MaterialiseResult) -> dict[str, str]:
    return {one.table.partition(".")[2]: str(one.error["what"]) for one in result.tables if one.error}


def check_cured(source: LiveSource) -> None:
    """A load releases the table, and the next delta applies its changes."""
    source.load("t")
    result, found = delta(source, "INSERT INTO t VALUES (7)", "INSERT INTO u VALUES (7)")
    assert (result.exit_code, found, source.differences()) == (0, [], [])


def test_a_dropped_table_that_was_created_again_without_logging(source: LiveSource) -> None:
    source.run(CREATED, "DROP TABLE t", "INSERT INTO u VALUES (1)")
    assert source.delta().exit_code == 0
    source.run("SET sql_log_bin = 0", CREATED, "SET sql_log_bin = 1")
    assert delta(source, "INSERT INTO u VALUES (2)")[1] == ["t"]
    result, found = delta(source, "INSERT INTO t VALUES (2)", "INSERT INTO u VALUES (3)")
    assert (errors(result), found) == ({"t": NEVER_LOADED.format(f"{source.database}.t")}, ["t"])
    assert result.published
    check_cured(source)


@pytest.mark.sweep
def test_a_dropped_table_that_was_created_again_while_it_was_excluded(source: LiveSource) -> None:
    source.run(CREATED, "DROP TABLE t", "INSERT INTO u VALUES (1)")
    source.delta()
    without(source, "t", CREATED, "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)")
    result, found = delta(source, "INSERT INTO t VALUES (2)", "INSERT INTO u VALUES (3)")
    assert (errors(result), found) == ({"t": NEVER_LOADED.format(f"{source.database}.t")}, ["t"])
    check_cured(source)


@pytest.mark.sweep
def test_a_table_that_was_dropped_while_it_was_excluded(source: LiveSource) -> None:
    source.run(CREATED, "INSERT INTO u VALUES (1)")
    source.delta()
    without(source, "t", "INSERT INTO t VALUES (1)", "DROP TABLE t", "INSERT INTO u VALUES (2)")
    assert delta(source, "INSERT INTO u VALUES (3)")[1] == []
    result, found = delta(source, CREATED, "INSERT INTO t VALUES (2)")
    assert (result.exit_code, found, source.differences()) == (0, [], [])


@pytest.mark.sweep
def test_a_created_table_that_got_rows_while_it_was_excluded(source: LiveSource) -> None:
    source.run(CREATED, "INSERT INTO u VALUES (1)")
    source.delta()
    without(source, "t", "INSERT INTO t VALUES (1),(2)", "INSERT INTO u VALUES (2)")
    result, found = delta(source, "INSERT INTO u VALUES (3)")
    assert (result.exit_code, found) == (0, ["t"])
    check_cured(source)


@pytest.mark.sweep
def test_a_dropped_table_that_was_created_again_in_a_gap_of_the_log(source: LiveSource) -> None:
    """All tables are loaded again after the gap, and the load is killed before it reads the table."""
    source.run(CREATED, "DROP TABLE t", "INSERT INTO u VALUES (1)")
    source.delta()
    source.run(CREATED, "INSERT INTO t VALUES (1)")
    assert pipeline.plan_interval(source.settings)  # it is never staged
    spec: Any = pipeline.read_tables_job(source.settings, (), again=True).spec
    read = stage_tables(Threads(2), spec.model_copy(update={"only": (f"{source.database}.u",)}))
    loaded: Any = pipeline.load_tables_job(source.settings, read.manifests).spec
    assert load(source.spark, loaded).exit_code == 0
    assert pipeline.chain_of(source.settings).require_generation().gap
    result, found = delta(source, "INSERT INTO t VALUES (2)", "INSERT INTO u VALUES (3)")
    assert (errors(result), found) == ({"t": NEVER_LOADED.format(f"{source.database}.t")}, ["t"])
    check_cured(source)


@pytest.mark.sweep
def test_dropped_tables_with_rows_stay_silent(source: LiveSource) -> None:
    source.run(CREATED, "INSERT INTO t VALUES (1)", "DROP TABLE t", "INSERT INTO u VALUES (1)")
    assert source.delta().exit_code == 0
    result, found = delta(
        source, "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (2)", "DROP TABLE t"
    )
    assert (errors(result), found) == ({}, [])
    result, found = delta(source, "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (3)")
    assert (errors(result), found, source.differences()) == ({}, [], [])


def drop_in_warehouse(source: LiveSource, table: str) -> None:
    warehouse = Warehouse(source.spark, source.settings.catalog)
    warehouse.session.sql(f"DROP TABLE {warehouse.name(TableName(source.database, table))}")


def test_a_table_that_somebody_drops_in_the_warehouse(source: LiveSource) -> None:
    source.run(CREATED, "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (1)")
    assert source.delta().exit_code == 0
    drop_in_warehouse(source, "t")
    for number in (2, 3):
        result, _ = delta(source, f"INSERT INTO u VALUES ({number})")
        assert errors(result) == {"t": LOST}
        assert (result.published != "", result.exit_code) == (True, 4)
    assert [str(table) for table in pipeline.quarantines_of(source.settings).all()] == [f"{source.database}.t"]
    assert source.load_again("t").exit_code == 0
    result, found = delta(source, "INSERT INTO t VALUES (7)", "INSERT INTO u VALUES (7)")
    assert (errors(result), found, source.differences()) == ({}, [], [])


@pytest.mark.sweep
@pytest.mark.parametrize("changed", [True, False])
def test_a_loaded_table_that_somebody_drops_in_the_warehouse(source: LiveSource, changed: bool) -> None:
    """The hint works even if the server logged nothing for the table since its load."""
    source.run("SET sql_log_bin = 0", CREATED, "INSERT INTO t VALUES (1)", "SET sql_log_bin = 1")
    source.load("t")
    assert delta(source, "INSERT INTO u VALUES (1)")[0].exit_code == 0
    drop_in_warehouse(source, "t")
    more = ["INSERT INTO t VALUES (2)"] if changed else []
    assert errors(delta(source, "INSERT INTO u VALUES (2)", *more)[0]) == {"t": LOST}
    source.load_again("t")
    result, found = delta(source, "INSERT INTO t VALUES (7)", "INSERT INTO u VALUES (7)")
    assert (errors(result), found, source.differences()) == ({}, [], [])


@pytest.mark.sweep
@pytest.mark.parametrize("statement", ["DROP TABLE t", "RENAME TABLE t TO gone", "TRUNCATE t"])
def test_a_table_of_the_warehouse_can_be_dropped_after_the_table_of_the_server(
    source: LiveSource, statement: str
) -> None:
    source.run(CREATED, "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (1)")
    source.delta()
    source.run("INSERT INTO u VALUES (2)", statement)
    source.stage()
    source.run("INSERT INTO u VALUES (3)")
    source.stage()
    assert source.merge().exit_code == 0
    drop_in_warehouse(source, "t")
    result, found = delta(source, "INSERT INTO u VALUES (4)")
    assert (errors(result), found) == (
        {"t": LOST} if "TRUNCATE" in statement else {},
        [],
    )
    if statement == "DROP TABLE t":
        result, _ = delta(source, CREATED, "INSERT INTO t VALUES (2)")
        assert (errors(result), source.differences()) == ({}, [])


@pytest.mark.sweep
def test_a_table_of_the_warehouse_can_be_dropped_after_a_gap_that_dropped_it(source: LiveSource) -> None:
    source.run(CREATED, "INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (1)")
    source.delta()
    source.run("DROP TABLE t")
    assert pipeline.plan_interval(source.settings)  # it is never staged
    source.load_again()
    assert pipeline.chain_of(source.settings).require_generation().gap
    assert delta(source, "INSERT INTO u VALUES (2)")[0].exit_code == 0
    drop_in_warehouse(source, "t")
    result, found = delta(source, "INSERT INTO u VALUES (3)")
    assert (errors(result), found, source.differences()) == ({}, [], [])
