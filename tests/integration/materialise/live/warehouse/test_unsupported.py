"""Tables that a load refuses are also refused where the log creates or alters them before their first row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pymysql
import pytest
from pyspark.sql import SparkSession

from loader import pipeline
from loader.errors import UnsupportedError
from loader.initial_load.run import stage_tables
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.materialise.live_source import LiveSource, live_source

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

CASCADE = "ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE"


def on_mariadb(live: LiveSource) -> bool:
    return "MariaDB" in live.run("SELECT VERSION()")[0][0]


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.run("CREATE TABLE parent (id INT PRIMARY KEY)", "INSERT INTO parent VALUES (1), (2)")
    return live


def right_or_stopped(source: LiveSource, stopped: bool, table: str = "child") -> None:
    """A delta stops the table, or the table is equal."""
    statuses = source.statuses(source.delta())
    assert (statuses.get(table) == "quarantined") is stopped, statuses
    assert [name for name in source.differences() if statuses.get(name) != "quarantined"] == []


def refusal_of_a_load(source: LiveSource, table: str) -> str:
    job = pipeline.read_tables_job(source.settings, (f"{source.database}.{table}",), again=True)
    (found,) = stage_tables(Threads(2), cast("Any", job.spec)).tables
    return str(found.error["what"]) if found.error else ""


def test_a_foreign_key_before_the_first_row(source: LiveSource) -> None:
    """As frameworks create tables. MySQL logs what foreign keys change since 9.6."""
    source.load()
    source.run(
        "CREATE TABLE child (id INT PRIMARY KEY, p INT)",
        f"ALTER TABLE child {CASCADE}",
        "INSERT INTO child VALUES (1, 1), (2, 2)",
        "DELETE FROM parent WHERE id = 1",
    )
    right_or_stopped(source, on_mariadb(source))


def test_a_foreign_key_of_a_rebuilt_table(source: LiveSource) -> None:
    source.run("CREATE TABLE child (id INT PRIMARY KEY, p INT)", "INSERT INTO child VALUES (1, 1), (2, 2)")
    source.load()
    source.run(
        "CREATE TABLE child_new LIKE child",
        f"ALTER TABLE child_new {CASCADE}",
        "INSERT INTO child_new SELECT * FROM child",
        "RENAME TABLE child TO child_old, child_new TO child",
        "DELETE FROM parent WHERE id = 1",
    )
    right_or_stopped(source, on_mariadb(source))


def test_an_alter_that_also_renames(source: LiveSource) -> None:
    source.run("CREATE TABLE child (id INT PRIMARY KEY, p INT)")
    source.load()
    source.run(
        f"ALTER TABLE child {CASCADE}, RENAME TO other",
        "INSERT INTO other VALUES (1, 1), (2, 2)",
        "DELETE FROM parent WHERE id = 1",
    )
    right_or_stopped(source, on_mariadb(source), "other")


def test_versions_of_rows(source: LiveSource) -> None:
    """ALTER TABLE adds system versioning. CREATE TABLE LIKE copies it, which the log does not show."""
    if not on_mariadb(source):
        pytest.skip("only MariaDB has system versioning")
    source.load()
    source.run(
        "CREATE TABLE versioned (id INT PRIMARY KEY, p INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE child LIKE versioned",
        "CREATE TABLE altered (id INT PRIMARY KEY, p INT)",
        "ALTER TABLE altered ADD SYSTEM VERSIONING",
        *(
            statement
            for table in ("child", "altered")
            for statement in (
                f"INSERT INTO {table} VALUES (1, 1), (2, 2)",
                f"UPDATE {table} SET p = 5 WHERE id = 1",
                f"DELETE FROM {table} WHERE id = 2",
            )
        ),
    )
    statuses = source.statuses(source.delta())
    assert {statuses.get(name) for name in ("child", "altered")} == {"quarantined"}


def test_a_long_unique_key(source: LiveSource) -> None:
    """MariaDB keeps its hash in a hidden column, and logs it."""
    source.load()
    if not on_mariadb(source):
        pytest.skip("only MariaDB has unique keys of unlimited length")
    source.run(
        "CREATE TABLE child (id INT PRIMARY KEY, b TEXT UNIQUE)",
        "INSERT INTO child VALUES (1, 'a'), (2, 'b')",
        "UPDATE child SET b = 'c' WHERE id = 1",
    )
    right_or_stopped(source, stopped=True)


def test_an_adopted_child(source: LiveSource) -> None:
    source.run(f"CREATE TABLE child (id INT PRIMARY KEY, p INT, {CASCADE.removeprefix('ADD ')})")
    source.load("parent")
    if not on_mariadb(source):
        pytest.skip("the log has what foreign keys change")
    with pytest.raises(UnsupportedError, match="does not have all changes"):
        pipeline.plan_adoption(source.settings, (f"{source.database}.child",), "end")


@pytest.mark.parametrize("altered", [False, True])
def test_an_engine_without_rows(source: LiveSource, altered: bool) -> None:
    source.load()
    engine = "ENGINE = BLACKHOLE"
    created = ["CREATE TABLE child (id INT PRIMARY KEY, p INT)"]
    try:
        source.run(*((*created, f"ALTER TABLE child {engine}") if altered else (f"{created[0]} {engine}",)))
    except pymysql.MySQLError as error:
        pytest.skip(str(error))
    source.run("INSERT INTO child VALUES (1, 1), (2, 2)")
    right_or_stopped(source, stopped=True)
    assert refusal_of_a_load(source, "child") == "tables of engine BLACKHOLE are not supported"


@pytest.mark.parametrize("altered", [False, True])
def test_an_engine_that_rounds(source: LiveSource, altered: bool) -> None:
    """CSV stores 1.23457 for a FLOAT of 1.2345678."""
    created = "CREATE TABLE child (id INT NOT NULL, p INT NOT NULL, f FLOAT NOT NULL)"
    row = "INSERT INTO child VALUES (1, 1, 1.2345678)"
    if altered:
        source.run(created, row)
        source.load()
        source.run("ALTER TABLE child ENGINE = CSV")
    else:
        source.load()
        source.run(f"{created} ENGINE = CSV", row)
    assert source.run("SELECT f = 1.2345678 FROM child") == [(0,)]
    right_or_stopped(source, stopped=True)
    assert "engine CSV" in refusal_of_a_load(source, "child")


def test_merged_tables_are_refused_by_a_load(source: LiveSource) -> None:
    """Their rows are those of other tables."""
    source.run(
        "CREATE TABLE part (id INT PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE child (id INT PRIMARY KEY) ENGINE = MERGE UNION = (part)",
    )
    assert (
        refusal_of_a_load(source, "child").replace("MyISAM", "MYISAM")
        == "tables of engine MRG_MYISAM are not supported"
    )


def test_a_server_that_stops_logging_what_foreign_keys_change(
    spark: SparkSession, fresh_server: StartServer, tmp_path: Path
) -> None:
    """The child stops, and is loaded again when its foreign key is RESTRICT. The other tables go on."""
    server = fresh_server("mysql")
    with live_source(spark, server, tmp_path) as source:
        source.run(
            "CREATE TABLE parent (id INT PRIMARY KEY)",
            "INSERT INTO parent VALUES (1), (2)",
            f"CREATE TABLE child (id INT PRIMARY KEY, p INT, {CASCADE.removeprefix('ADD ')})",
            "INSERT INTO child VALUES (1, 1), (2, 2)",
        )
        source.load()
        source.run("INSERT INTO child VALUES (3, 2)")
        right_or_stopped(source, stopped=False)

        server.restart({"innodb_native_foreign_keys": "ON"})
        source.run("DELETE FROM parent WHERE id = 1")
        right_or_stopped(source, stopped=True)
        source.run("INSERT INTO child VALUES (4, 2)")
        right_or_stopped(source, stopped=True)
        assert refusal_of_a_load(source, "child") == "the log does not have all changes of the table"

        source.run("ALTER TABLE child DROP FOREIGN KEY f", "DELETE FROM child WHERE id = 3")
        source.load_again("child")
        source.run("INSERT INTO child VALUES (5, 2)")
        right_or_stopped(source, stopped=False)
        assert source.differences() == []
