"""Tables that are loaded again while the server logs nothing."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.initial_load.run import stage_tables
from loader.materialise.iceberg.warehouse import Warehouse
from loader.model.table import TableName
from loader.spark.workers import Threads
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.run(
        "CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE b (name VARCHAR(20))",
        "INSERT INTO a VALUES (1,'one'),(2,'two')",
        "INSERT INTO b VALUES ('x'),('x')",
    )
    live.load()
    live.run("INSERT INTO a VALUES (3,'three')", "INSERT INTO b VALUES ('y')")
    live.delta()
    return live


def damage(source: LiveSource) -> None:
    """Change rows in the warehouse, as another tool does."""
    warehouse = Warehouse(source.spark, source.settings.catalog)
    names = [warehouse.name(TableName(source.database, table)) for table in "ab"]
    warehouse.session.sql(f"DELETE FROM {names[0]} WHERE id = 1")
    warehouse.session.sql(f"INSERT INTO {names[1]} SELECT * FROM {names[1]}")


def test_rows_that_a_merge_brought_to_the_end_of_the_log_are_replaced(source: LiveSource) -> None:
    damage(source)
    assert source.differences() == ["a", "b"]
    assert source.statuses(source.load_again("a", "b")) == {"a": "applied", "b": "applied"}
    assert source.differences() == []
    source.run("UPDATE a SET name = 'drei' WHERE id = 3", "DELETE FROM b WHERE name = 'y'")
    assert source.statuses(source.delta()) == {"a": "applied", "b": "applied"}
    assert source.differences() == []


def test_rows_are_replaced_after_the_server_begins_a_new_file(source: LiveSource) -> None:
    """Before that, there is a load at this position. Its rows may be older: a session can write nothing to the log."""
    source.load_again("a", "b")
    damage(source)
    source.run("SET SESSION sql_log_bin = 0", "INSERT INTO a VALUES (4,'four')")
    names = tuple(f"{source.database}.{table}" for table in "ab")
    read = stage_tables(Threads(2), cast("Any", pipeline.read_tables_job(source.settings, names, again=True).spec))
    what = "the table cannot be read again, because the log has not grown since it was loaded"
    assert [one.error and one.error["what"] for one in read.tables] == [what, what]
    source.run("FLUSH BINARY LOGS")
    assert source.statuses(source.load_again("a", "b")) == {"a": "applied", "b": "applied"}
    assert source.differences() == []
