"""Statements of MariaDB whose effect on rows is not in its log, and statements that have none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.servers import Server
from loader import pipeline
from tests.integration.materialise.live_source import LiveSource, live_source

pytestmark = pytest.mark.integration


@pytest.fixture
def live(spark: SparkSession, mariadb_server: Server, tmp_path: Path) -> Iterator[LiveSource]:
    with live_source(spark, mariadb_server, tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    ("columns", "statement", "value"),
    [
        ("v INT", "ALTER TABLE t ADD w INT NOT NULL DEFAULT 5, ALTER w SET DEFAULT 6", "w"),
        ("v INT", "ALTER TABLE t DROP v, ADD v INT DEFAULT 5, ALTER COLUMN v DROP DEFAULT", "v"),
        ("v INT, g INT AS (v + 1) STORED, h INT AS (v + 2) VIRTUAL", "ALTER TABLE t DROP v, ADD v INT DEFAULT 5", "g"),
        ("v INT, w INT, h INT AS (v + 2) VIRTUAL", "ALTER TABLE t DROP v, CHANGE w v INT", "h"),
        ("v INT, w INT, h INT AS (v + 2) VIRTUAL", "ALTER TABLE t DROP v, RENAME COLUMN w TO v", "h"),
    ],
)
def test_new_values_that_the_log_does_not_have(live: LiveSource, columns: str, statement: str, value: str) -> None:
    live.run(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", "INSERT INTO t (id, v) VALUES (1, 10)")
    live.load()
    live.run(statement)
    assert live.run(f"SELECT {value} FROM t") != [(11 if value == "g" else 12 if value == "h" else 5,)]
    assert live.statuses(live.delta())["t"] == "quarantined"
    live.load_again()
    live.run("INSERT INTO t (id, v) VALUES (2, 3)")
    assert live.statuses(live.delta())["t"] == "applied"
    assert live.differences() == []


def test_a_column_that_replaces_none(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, w INT)", "INSERT INTO t VALUES (1, 10)")
    live.load()
    live.run("ALTER TABLE t DROP COLUMN IF EXISTS v, ADD v INT NOT NULL DEFAULT 5, ALTER w SET DEFAULT 6")
    assert live.statuses(live.delta())["t"] == "applied"
    assert live.differences() == []


def test_a_primary_key_that_exists(live: LiveSource) -> None:
    live.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)",
        "CREATE TABLE u (id INT NOT NULL UNIQUE, v INT)",
        "CREATE TABLE w (id INT PRIMARY KEY, v INT NOT NULL)",
        *(f"INSERT INTO {table} VALUES (1, 10), (2, 10)" for table in "tw"),
        "INSERT INTO u VALUES (1, 10), (2, 20)",
    )
    live.load()
    live.run(
        "ALTER TABLE t ADD PRIMARY KEY IF NOT EXISTS (v)",
        "ALTER TABLE u ADD PRIMARY KEY IF NOT EXISTS (v)",
        "UPDATE u SET id = 3 WHERE v = 10",
        "ALTER TABLE w DROP PRIMARY KEY, ADD PRIMARY KEY IF NOT EXISTS (v)",
    )
    assert live.delta().exit_code == 0
    assert live.differences() == []
    live.run(
        "UPDATE t SET v = 11 WHERE id = 1",
        "UPDATE u SET v = 11 WHERE id = 3",
        "INSERT INTO w VALUES (1, 10)",
        "DELETE FROM w WHERE id = 2",
    )
    assert live.statuses(live.delta()) == {"t": "applied", "u": "applied", "w": "applied"}
    assert live.differences() == []


def test_a_rename_if_exists_of_a_table_that_never_existed(live: LiveSource) -> None:
    """The table that it names gets no rows. Nothing tells that, so a person excludes it."""
    live.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    live.load()
    live.run("RENAME TABLE IF EXISTS never TO ever, t TO u")
    result = live.delta()
    (stopped,) = (table for table in result.tables if table.error)
    assert stopped.table == f"{live.database}.ever" and stopped.error
    cure = (
        f"if it is a view, or the server has no such table, add '{live.database}.ever' to tables.exclude of the source"
    )
    assert f"{cure}; then, unless the table was loaded again: loader release {stopped.table}" in stopped.error["hint"]
    captured = live.settings.tables.model_copy(update={"exclude": (f"{live.database}.ever",)})
    live.settings = live.settings.model_copy(update={"tables": captured})
    pipeline.release(live.settings, stopped.table)
    live.run("INSERT INTO u VALUES (2)")
    result = live.delta()
    assert (result.exit_code, live.differences()) == (0, [])
    assert [table.table for table in result.tables if table.error] == []
