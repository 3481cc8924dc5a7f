"""Rows of statements that a session logs instead of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from loader.pipeline import find_unloaded, list_tables
from tests.integration.materialise.live_source import LiveSource, live_source

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]
QUERIES = {
    "mysql": [
        "SELECT * FROM a", "TABLE a", "(id INT PRIMARY KEY) AS TABLE a LIMIT 1", "VALUES ROW(1,'x'), ROW(2,'y')",
        "AS (TABLE a LIMIT 1)", "(id INT) REPLACE TABLE a",
    ],
    "mariadb": ["SELECT * FROM a", "VALUES (1,'x'), (2,'y')", "AS VALUES (1), (2)"],
}  # fmt: skip


@pytest.mark.parametrize("kind", QUERIES)
def test_tables_whose_rows_are_not_in_the_log_are_not_taken_for_empty(
    kind: str, spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for number, query in enumerate(QUERIES[kind]):
        with live_source(spark, request.getfixturevalue(f"{kind}_server"), tmp_path / str(number)) as live:
            live.run("CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(9))", "INSERT INTO a VALUES (1, 'one')")
            live.load()
            live.run("INSERT INTO a VALUES (2, 'two')")
            live.delta()
            live.run("SET SESSION binlog_format = STATEMENT", f"CREATE TABLE b {query}")
            listed = list_tables(live.settings)
            live.delta()
            assert [one.table for one in find_unloaded(live.settings, listed)] == [f"{live.database}.b"], query
            live.run("INSERT INTO b (SELECT b.* FROM b LIMIT 1)" if "KEY" not in query else "DELETE FROM b")
            assert [one.table for one in live.delta().tables if one.error] == [f"{live.database}.b"], query
            live.load_again("b")
            live.delta()
            assert live.differences() == [], query


def test_a_statement_that_mariadb_analyzes_while_it_runs(
    spark: SparkSession, mariadb_server: Any, tmp_path: Path
) -> None:
    with live_source(spark, mariadb_server, tmp_path) as live:
        live.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)" for name in "abcd"))
        live.run(*(f"INSERT INTO {name} VALUES (1, 1)" for name in "abcd"))
        live.load()
        live.run(
            "SET SESSION binlog_format = STATEMENT",
            "ANALYZE UPDATE a SET n = 2",
            "/* x */ analyze format = json DELETE FROM b",
            "ANALYZE TABLE d",
        )
        assert [one.table.partition(".")[2] for one in live.delta().tables if one.error] == ["a", "b"]
        live.load_again("a", "b")
        live.run(
            "SET SESSION binlog_format = STATEMENT",
            "SET STATEMENT max_statement_time = 9 FOR ANALYZE REPLACE INTO c VALUES (1, 3)",
        )
        errors = {one.table.partition(".")[2] for one in live.delta().tables if one.error}
        assert set(live.differences()) <= errors == set("abcd")


def test_a_word_between_the_verb_and_the_table(live: LiveSource) -> None:
    live.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)" for name in "ab"))
    live.run(*(f"INSERT INTO {name} VALUES (1, 1)" for name in "ab"))
    live.load()
    live.run("SET SESSION binlog_format = MIXED", "UPDATE LOW_PRIORITY a SET n = 2")
    errors = {one.table.partition(".")[2] for one in live.delta().tables if one.error}
    assert live.differences() == ["a"]
    assert "a" in errors


def test_a_name_without_quotes_that_ends_with_a_space_of_unicode(live: LiveSource) -> None:
    live.run(*(f"CREATE TABLE `{name}` (id INT PRIMARY KEY, n INT)" for name in ("a", "a\u3000")))
    live.run(*(f"INSERT INTO `{name}` VALUES (1, 1)" for name in ("a", "a\u3000")))
    live.load()
    live.run("SET NAMES utf8mb4", "SET SESSION binlog_format = MIXED", "UPDATE a\u3000 SET n = 2")
    errors = {one.table.partition(".")[2] for one in live.delta().tables if one.error}
    assert "a\u3000" in errors


def test_a_table_that_is_only_named_in_an_executable_comment(live: LiveSource) -> None:
    live.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)" for name in "ab"))
    live.run(*(f"INSERT INTO {name} VALUES (1, 1)" for name in "ab"))
    live.load()
    live.run("SET SESSION binlog_format = STATEMENT", "UPDATE a /*!40000 , b */ SET b.n = 2")
    errors = {one.table.partition(".")[2] for one in live.delta().tables if one.error}
    assert live.differences() == ["b"]
    assert "b" in errors
