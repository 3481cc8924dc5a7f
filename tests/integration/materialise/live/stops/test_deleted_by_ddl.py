"""Statements that delete rows without naming them: the log has the statement, and not the rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.servers import Server
from tests.integration.materialise.live_source import LiveSource, live_source

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

LISTS = "PARTITION BY LIST (id) (PARTITION p VALUES IN (1, 2), PARTITION q VALUES IN (3))"
RANGES = "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (3), PARTITION q VALUES LESS THAN (9))"


def test_partitions_that_are_reorganized(live: LiveSource) -> None:
    """Rows that are in no new list are deleted. New ranges keep all rows."""
    for table, partitions in (("lists", LISTS), ("ranges", RANGES)):
        live.run(
            f"CREATE TABLE {table} (id INT PRIMARY KEY) {partitions}",
            f"INSERT INTO {table} VALUES (1), (2), (3)",
        )
    live.load()
    live.run(
        "ALTER TABLE lists REORGANIZE PARTITION p INTO (PARTITION p VALUES IN (1))",
        "ALTER TABLE ranges REORGANIZE PARTITION p, q INTO (PARTITION r VALUES LESS THAN (9))",
        "INSERT INTO ranges VALUES (4)",
    )
    assert live.run("SELECT id FROM lists") == [(1,), (3,)]
    assert live.statuses(live.delta()) == {"lists": "quarantined", "ranges": "applied"}
    live.load_again("lists")
    live.run("DELETE FROM lists WHERE id = 3")
    assert live.statuses(live.delta())["lists"] == "applied"
    assert live.differences() == []


@pytest.mark.parametrize("statement", ["REPAIR TABLE intact, t", "ALTER TABLE t REPAIR PARTITION ALL"])
def test_tables_that_are_repaired(statement: str, spark: SparkSession, mariadb_server: Server, tmp_path: Path) -> None:
    partitions = "PARTITION BY KEY () PARTITIONS 1" if "PARTITION" in statement else ""
    with live_source(spark, mariadb_server, tmp_path) as live:
        live.run(
            "CREATE TABLE intact (id INT PRIMARY KEY)",
            f"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(99)) ENGINE = MyISAM ROW_FORMAT = DYNAMIC {partitions}",
            "INSERT INTO t VALUES (1, REPEAT('a', 50)), (2, REPEAT('b', 50)), (3, REPEAT('c', 50))",
            "FLUSH TABLES t",
        )
        live.load()
        live.run("FLUSH TABLES t")
        (file,) = (mariadb_server.data_dir / "data" / live.database).glob("t*.MYD")
        data = file.read_bytes()
        header = data.index(b"b" * 50) - 8
        file.write_bytes(data[:header] + b"\xff" * 16 + data[header + 16 :])
        live.run(statement)
        assert live.run("SELECT id FROM t") == [(1,), (3,)]
        assert live.statuses(live.delta())["t"] == "quarantined"
        live.load_again()
        live.run("DELETE FROM t WHERE id = 1")
        assert live.statuses(live.delta())["t"] == "applied"
        assert live.differences() == []


def test_a_create_or_replace_that_failed(spark: SparkSession, mariadb_server: Server, tmp_path: Path) -> None:
    """MariaDB has dropped the old table by then. It logs the statement with its error."""
    with live_source(spark, mariadb_server, tmp_path) as live:
        live.run("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)")
        live.run("CREATE TABLE new (id INT PRIMARY KEY, n INT)", "INSERT INTO new VALUES (2, 2)")
        live.load()
        with pytest.raises(Exception, match="Foreign key constraint is incorrectly formed"):
            live.run("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, n INT, FOREIGN KEY (n) REFERENCES nowhere (x))")
        live.run("RENAME TABLE IF EXISTS new TO t", "INSERT INTO t VALUES (3, 3)")
        assert live.statuses(live.delta())["t"] == "applied"
        assert live.differences() == []
