"""Statements that a server writes itself are UTF-8 in its log, whatever character set its client has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.integration.materialise.live_source import LiveSource, live_source

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


@pytest.fixture
def mariadb(spark: SparkSession, fresh_server: Any, tmp_path: Path) -> Iterator[LiveSource]:
    with live_source(spark, fresh_server("mariadb"), tmp_path) as found:
        yield found


def in_latin1(live: LiveSource, *statements: str) -> None:
    """Run statements as a client whose character set is latin1."""
    server = live.server
    connection = pymysql.connect(
        host=server.host, port=server.port, user=server.user, database=live.database, charset="latin1", autocommit=True
    )
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def settled(live: LiveSource) -> None:
    """Merge everything, without errors and differences."""
    assert [one.error for one in live.delta().tables if one.error] == []
    assert live.differences() == []


def test_tables_that_are_created_from_a_query_or_like_a_temporary_table(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)")
    live.load()
    in_latin1(
        live,
        "CREATE TABLE `früh` (id INT PRIMARY KEY, `größe` INT) CHARACTER SET latin1 SELECT 1 AS id, 2 AS `größe`",
        "CREATE TEMPORARY TABLE held (id INT PRIMARY KEY, `größe` ENUM('klein','groß'))",
        "CREATE TABLE `spät` LIKE held",
        "INSERT INTO `spät` VALUES (1, 'groß')",
        "CREATE TABLE `selbst` (id INT PRIMARY KEY, `größe` INT)",
        "INSERT INTO `selbst` VALUES (1, 2)",
    )
    settled(live)


def test_a_default_that_the_connection_cannot_hold_stops_its_table(live: LiveSource) -> None:
    """SET CHARACTER SET leaves the connection in the character set of the database; the server stores `?`."""
    tables = "lost", "kept"
    live.run(*(f"CREATE TABLE {table} (id INT PRIMARY KEY) CHARACTER SET utf8mb4" for table in tables))
    live.run(*(f"INSERT INTO {table} VALUES (1)" for table in tables))
    live.load()
    live.run(
        f"ALTER DATABASE {live.database} CHARACTER SET latin1",
        f"USE {live.database}",
        "SET CHARACTER SET utf8mb4",
        "ALTER TABLE lost ADD word VARCHAR(9) DEFAULT 'żółw'",
        "ALTER TABLE kept ADD `żółw` VARCHAR(9) DEFAULT 'größe'",
    )
    assert live.server_rows("lost") == {(1, "?ó?w"): 1}
    errors = {one.table.partition(".")[2]: one.error for one in live.delta().tables if one.error}
    assert list(errors) == ["lost"]
    assert live.differences() == ["lost"]
    live.load_again("lost")
    settled(live)


@pytest.mark.parametrize("compressed", ["OFF", "ON"])
def test_tables_that_are_replaced_lose_their_rows(mariadb: LiveSource, compressed: str) -> None:
    mariadb.run(
        f"SET GLOBAL log_bin_compress = {compressed}",
        "SET GLOBAL log_bin_compress_min_len = 10",
        "CREATE TABLE `früh` (id INT PRIMARY KEY)",
        "INSERT INTO `früh` VALUES (1), (2)",
        "CREATE TABLE `spät` LIKE `früh`",
        "INSERT INTO `spät` VALUES (1), (2)",
        "CREATE TABLE `weg` (id INT PRIMARY KEY) COMMENT 'ä'",
    )
    mariadb.load()
    in_latin1(
        mariadb,
        "CREATE OR REPLACE TABLE `früh` (id INT PRIMARY KEY) COMMENT 'ü' SELECT 3 AS id",
        "CREATE TEMPORARY TABLE held (id INT PRIMARY KEY)",
        "CREATE OR REPLACE TABLE `spät` LIKE held",
    )
    settled(mariadb)


@pytest.mark.parametrize("name", ["a", "früh"])
def test_a_table_that_could_not_be_replaced_is_dropped(mariadb: LiveSource, name: str) -> None:
    mariadb.run(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)", f"INSERT INTO `{name}` VALUES (1), (2)")
    mariadb.load()
    with pytest.raises(pymysql.err.IntegrityError):
        in_latin1(mariadb, f"CREATE OR REPLACE TABLE `{name}` (id INT PRIMARY KEY) SELECT 3 AS id UNION ALL SELECT 3")
    assert mariadb.run("SHOW TABLES") == []
    mariadb.run(f"CREATE TABLE IF NOT EXISTS `{name}` (id INT PRIMARY KEY)", f"INSERT INTO `{name}` VALUES (9)")
    settled(mariadb)


def test_tables_of_a_database_that_could_not_be_dropped_whole(mariadb: LiveSource) -> None:
    mariadb.run("CREATE TABLE `früh` (id INT PRIMARY KEY)", "INSERT INTO `früh` VALUES (1), (2)")
    mariadb.load()
    datadir = mariadb.run("SELECT @@datadir")[0][0]
    stray = Path(datadir, mariadb.database, "stray.txt")
    stray.touch()
    with pytest.raises(pymysql.err.OperationalError, match="Error dropping database"):
        in_latin1(mariadb, f"DROP DATABASE {mariadb.database}")
    stray.unlink()
    mariadb.run("CREATE TABLE IF NOT EXISTS `früh` (id INT PRIMARY KEY)", "INSERT INTO `früh` VALUES (9)")
    settled(mariadb)


def test_a_memory_table_is_empty_after_a_restart(mariadb: LiveSource) -> None:
    mariadb.run("CREATE TABLE `früh` (id INT PRIMARY KEY) ENGINE = MEMORY", "INSERT INTO `früh` VALUES (1), (2)")
    mariadb.load()
    mariadb.server.restart()
    in_latin1(mariadb, "INSERT INTO `früh` VALUES (3)")
    settled(mariadb)
