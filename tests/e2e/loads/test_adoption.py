"""Tables that another tool loaded follow the log from a known position on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from infra.servers import start_server
from loader.config.file import load_config
from loader.materialise.iceberg.warehouse import Warehouse
from tests.e2e.loaded import Loaded
from tests.support.replicas import run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

BEFORE = """
CREATE DATABASE shop
CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100), amount DECIMAL(10,2), at DATETIME(6), _pos INT)
CREATE TABLE shop.narrow (id INT PRIMARY KEY, n BIGINT)
INSERT INTO shop.orders VALUES (1, 'a', 1.25, '2026-01-01 00:00:00', 7), (2, 'b', NULL, NULL, 8), (3, 'c', 3, NULL, 9)
INSERT INTO shop.narrow VALUES (1, 1)
"""
COPIED = (
    "CREATE NAMESPACE lake.shop",
    # As another tool would have it: columns in another order, required, and none of the loader's.
    "CREATE TABLE lake.shop.orders (name string, id int NOT NULL, __pos int, at timestamp_ntz, amount decimal(10,2))"
    " USING iceberg TBLPROPERTIES ('format-version' = '1')",
    "INSERT INTO lake.shop.orders VALUES ('a', 1, 7, timestamp_ntz'2026-01-01 00:00:00', 1.25),"
    " ('b', 2, 8, NULL, NULL), ('c', 3, 9, NULL, 3)",
    "CREATE TABLE lake.shop.narrow (id int, n int, extra string) USING iceberg",
)
TABLES = ("shop.orders",)


@pytest.fixture(params=["mysql", "mariadb"])
def copied(request: pytest.FixtureRequest, tmp_path: Path, jars: str, spark: SparkSession) -> Iterator[Loaded]:
    """A server whose tables were copied by Spark, and then changed."""
    with start_server(request.param, tmp_path / "server") as server:
        found = Loaded(server, tmp_path / "loader", jars, spark=lambda: spark)
        found.configure()
        found.execute(*BEFORE.strip().splitlines())
        found.create_user()
        session = Warehouse(spark, load_config(str(found.config)).source().catalog).session
        for statement in COPIED:
            session.sql(statement)
        yield found


def test_an_adopted_table_follows_the_log(copied: Loaded) -> None:
    name = "gtid_executed" if copied.server.kind == "mysql" else "gtid_binlog_pos"
    ((place,),) = run(copied.server, f"SELECT @@global.{name}")
    copied.execute(
        "UPDATE shop.orders SET amount = 7 WHERE id = 1",
        "DELETE FROM shop.orders WHERE id = 2",
        "INSERT INTO shop.orders VALUES (4, 'd', 4, '2026-01-02 00:00:00.000001', 10)",
    )
    refused = copied.json("adopt", "--table", "shop.absent", "--at", place, code=2)
    assert refused["what"] == "the source has no such captured table, or the user may not see it"
    narrow, orders = adopted(copied, "shop.orders", "shop.narrow", at=place, code=4)
    assert narrow["error"]["why"] == "n is int instead of bigint; the source has no extra"
    assert orders["status"] == "applied", orders["error"]["why"]
    assert [one["status"] for one in adopted(copied, "shop.orders", at=place)] == ["already"]
    assert [one["error"]["exit_code"] for one in adopted(copied, "shop.orders", at="end", code=2)] == [2]

    for _ in range(2):
        copied.json("run")
        assert copied.differences(TABLES) == {"shop.orders": 0}
    copied.execute(
        "UPDATE shop.orders SET name = 'z', amount = NULL WHERE id = 3",
        "ALTER TABLE shop.orders ADD COLUMN note VARCHAR(10) NOT NULL DEFAULT 'x', DROP COLUMN at",
        "INSERT INTO shop.orders VALUES (5, '', 0, 11, 'new')",
    )
    copied.json("run")
    assert copied.differences(TABLES) == {"shop.orders": 0}
    loads = copied.json("initial-load", "--table", "shop.orders")
    assert [one["status"] for one in loads["tables"]] == ["already"]


def test_a_table_that_was_altered_after_the_place_is_refused(copied: Loaded) -> None:
    place = json.loads(copied.loader("--json", "begin", "--at", "end").stdout)["start"]
    copied.execute("ALTER TABLE shop.orders ADD COLUMN note VARCHAR(10)", "UPDATE shop.orders SET note = 'n'")
    (orders,) = adopted(copied, "shop.orders", at=place, code=4)
    assert orders["error"]["why"] == "note is missing"


def test_rows_that_differ_are_shown(copied: Loaded, spark: SparkSession) -> None:
    session = Warehouse(spark, load_config(str(copied.config)).source().catalog).session
    session.sql("UPDATE lake.shop.orders SET amount = 1.26 WHERE id = 1")
    session.sql("INSERT INTO lake.shop.orders SELECT * FROM lake.shop.orders WHERE id = 3")
    place = json.loads(copied.loader("--json", "begin", "--at", "end").stdout)["start"]
    copied.execute("DELETE FROM shop.orders WHERE id = 2", "INSERT INTO shop.orders (id) VALUES (4)")

    refused = copied.loader("adopt", "--table", "shop.orders", "--at", place)
    assert refused.returncode == 4
    assert "error: rows of the table have the same key (table shop.orders)" in refused.stderr
    assert "2 rows with (id) = (3), for example" in refused.stderr

    session.sql("DELETE FROM lake.shop.orders WHERE id = 3")
    session.sql("INSERT INTO lake.shop.orders VALUES ('c', 3, 9, NULL, 3)")
    adopted = copied.loader("adopt", "--table", "shop.orders", "--at", place)
    assert adopted.returncode == 4
    lines = [" ".join(line.split()) for line in adopted.stdout.splitlines()]
    assert f"shop.orders applied 0 0 0 {place}" in lines
    assert "shop.orders different 3 3 3 2" in lines
    assert lines[-3:] == [
        "shop.orders: only in the server: {'id': '1', 'name': 'a', 'amount': '1.25', 'at': '2026-01-01 00:00:00.000000',"
        " '_pos': '7'}",
        "shop.orders: only in the warehouse: {'id': '1', 'name': 'a', 'amount': '1.26', 'at':"
        " '2026-01-01 00:00:00.000000', '_pos': '7'}",
        "shop.orders: it follows the log with these differences; to read its rows from the source instead:"
        " loader initial-load --table shop.orders --again",
    ]
    copied.json("initial-load", "--table", "shop.orders", "--again")
    (verified,) = copied.json("verify", "--table", "shop.orders")["tables"]
    assert verified["status"] == "equal"


def adopted(loaded: Loaded, *tables: str, at: str, code: int = 0) -> list[dict[str, Any]]:
    names = [part for table in tables for part in ("--table", table)]
    found: list[dict[str, Any]] = loaded.json("adopt", *names, "--at", at, "--compare", "none", code=code)["tables"]
    return found
