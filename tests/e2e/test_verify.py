"""All rows compared with the server by the command, while others write, and after the warehouse was damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from infra.servers import start_server
from loader.config.file import load_config
from loader.materialise.iceberg.warehouse import Warehouse
from loader.transport.server.connection import connected
from tests.e2e.loaded import Loaded
from tests.e2e.writer import writing
from tests.integration.initial_load.values.every_value import HIGHEST, OTHERS, TABLE

pytestmark = pytest.mark.e2e

TABLES = """
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), ratio DOUBLE, at DATETIME(3))
CREATE TABLE rounded (id INT PRIMARY KEY, a DOUBLE(20,4), b FLOAT(20,4), c DOUBLE)
INSERT INTO rounded SELECT seq, RAND() * POW(10, seq % 15), RAND() * 1e9, -RAND() * POW(10, -200) FROM numbers
CREATE TABLE log (message TEXT)
CREATE TABLE events (id INT PRIMARY KEY) ENGINE = MyISAM
INSERT INTO orders (name, ratio, at) SELECT CONCAT('n', seq), seq / 7, '2026-01-01' FROM numbers
INSERT INTO log VALUES ('twice'), ('twice'), (NULL), ('')
"""
NUMBERS = """CREATE VIEW numbers AS WITH RECURSIVE n AS
 (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM n WHERE seq < 900) SELECT seq FROM n"""

ZEROS = "INSERT INTO every_type SET k1 = 'zeros', k2 = 99, su = 5, iu = 7, bu = 9, d2 = 1.5, dz = 2"


@pytest.fixture(scope="module", params=["mysql", pytest.param("mariadb", marks=pytest.mark.sweep)])
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, jars: str, spark: SparkSession
) -> Iterator[Loaded]:
    """A server with values of every type, loaded."""
    home = tmp_path_factory.mktemp(request.param)
    with start_server(request.param, home / "server") as server:
        found = Loaded(server, home / "loader", jars, spark=lambda: spark)
        found.configure()
        found.execute("CREATE DATABASE shop")
        with connected(found.address) as connection, connection.cursor() as cursor:
            cursor.execute("USE shop")
            rows = [f"INSERT INTO every_type SET {values}" for values in OTHERS if "partial dates" not in values]
            for statement in (TABLE, HIGHEST, ZEROS, *rows, NUMBERS, *TABLES.strip().splitlines()):
                cursor.execute(statement)
        found.create_user()
        found.json("initial-load")
        yield found


def verified(loaded: Loaded, code: int, *tables: str) -> dict[str, Any]:
    names = [part for table in tables for part in ("--table", table)]
    document = loaded.json("verify", *names, code=code)
    return {table["table"]: table for table in document["tables"]}


def test_rows_are_equal_while_others_write(compared: Loaded) -> None:
    compared.execute("CREATE TABLE shop.empty (id INT PRIMARY KEY)")  # it is in the warehouse from its first row on
    writes = (
        "INSERT INTO shop.orders (name, ratio) VALUES ('new', RAND())",
        "UPDATE shop.orders SET ratio = -ratio ORDER BY id DESC LIMIT 50",
        "DELETE FROM shop.orders WHERE name <> 'new' ORDER BY id LIMIT 1",
        "INSERT INTO shop.log VALUES ('twice')",
    )
    with writing(compared, 0.05, *writes) as written:
        assert written.wait(30)
        found = verified(compared, 4)
    assert {name: one["error"] or one["samples"] or one["status"] for name, one in found.items() if name != "shop.events"} == {
        "shop.empty": "equal", "shop.every_type": "equal", "shop.log": "equal", "shop.orders": "equal",
        "shop.rounded": "equal",
    }  # fmt: skip
    assert found["shop.events"]["error"]["what"] == (
        "a table of engine MyISAM cannot be read as of one position of the log"
    )
    assert found["shop.every_type"]["server_rows"] == found["shop.every_type"]["warehouse_rows"] == len(OTHERS) + 1
    assert found["shop.log"]["server_rows"] > 4


@pytest.mark.sweep
def test_damage_is_found(compared: Loaded, spark: SparkSession) -> None:
    assert {one["status"] for one in verified(compared, 0, "shop.orders", "shop.log").values()} == {"equal"}
    session = Warehouse(spark, load_config(str(compared.config)).source().catalog).session
    newest = session.table("lake.shop.orders").agg({"id": "max"}).first()[0]
    session.sql(f"UPDATE lake.shop.orders SET ratio = ratio + 1e-9 WHERE id = {newest}")
    session.sql("INSERT INTO lake.shop.log SELECT * FROM lake.shop.log WHERE message = ''")
    found = verified(compared, 4, "shop.orders", "shop.log")
    assert {name: (one["status"], one["differences"]) for name, one in found.items()} == {
        "shop.orders": ("different", 2), "shop.log": ("different", 1)
    }  # fmt: skip
    assert found["shop.log"]["samples"] == ["only in the warehouse: {'message': ''}"]
    assert [sample.partition(": ")[0] for sample in found["shop.orders"]["samples"]] == [
        "only in the server",
        "only in the warehouse",
    ]
