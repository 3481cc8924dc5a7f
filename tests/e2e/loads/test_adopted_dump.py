"""A dump of a server that others write to: loaded by plain Spark, adopted at the position of the dump, and followed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from infra.debian import program
from infra.servers import Server, fetch, start_server
from loader.config.file import load_config
from loader.materialise.iceberg.warehouse import Warehouse
from loader.transport.server.connection import connected
from tests.e2e.loaded import Loaded
from tests.e2e.writer import writing

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

SHOP = """
CREATE DATABASE shop
CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), amount DECIMAL(10,2), at DATETIME(6))
CREATE VIEW shop.numbers AS WITH RECURSIVE n AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM n WHERE seq < 900) SELECT seq FROM n
INSERT INTO shop.orders (name, amount, at) SELECT CONCAT('a, "', seq, '" ä'), seq / 7, '2026-01-01' + INTERVAL seq SECOND FROM shop.numbers
INSERT INTO shop.orders (name) VALUES (NULL), (''), ('NULL')
DROP VIEW shop.numbers
"""
COLUMNS = ("id int", "name string", "amount decimal(10,2)", "at timestamp_ntz")
_ROW = re.compile(r"^(?:INSERT INTO `orders` VALUES )?(\(.*\))[,;]$", re.MULTILINE)
Rows = list[tuple[Any, ...]]


def dumped_by_mysqldump(server: Server, _: Path) -> tuple[str, Rows]:
    """The position of a dump, and its rows."""
    options = ["--single-transaction", "--source-data=2", "--skip-extended-insert", "--set-gtid-purged=OFF"]
    argv = [*fetch("mysql").tool("mysqldump"), *_where(server), "--protocol=tcp", *options, "--no-create-info", "shop"]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    found = re.search(r"SOURCE_LOG_FILE='(.*)', SOURCE_LOG_POS=(\d+);", text)
    assert found
    return f"{found[1]}:{found[2]}", _rows(text)


def dumped_by_mydumper(server: Server, folder: Path) -> tuple[str, Rows]:
    """The same. The mydumper of Debian cannot ask MySQL 9 for a position."""
    tool = program("mydumper", "mydumper")
    (plugins,) = (Path(tool[-1]).parents[1] / "lib").glob("*/libmariadb3/plugin")
    argv = [*tool, *_where(server), "--database", "shop", "--no-schemas", "--outputdir", str(folder)]
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "MARIADB_PLUGIN_DIR": str(plugins)})
    found = re.search(r"Log: (\S+)\s+Pos: (\d+)", (folder / "metadata").read_text())
    assert found
    return f"{found[1]}:{found[2]}", _rows((folder / "shop.orders.sql").read_text())


def _where(server: Server) -> list[str]:
    return ["--host", server.host, "--port", str(server.port), "--user", server.user]


def _rows(text: str) -> Rows:
    """The rows of INSERT statements. These values are written as Python writes them, but for NULL."""
    return [ast.literal_eval(re.sub(r"(?<=,)NULL(?=[,)])", "None", row)) for row in _ROW.findall(text)]


@pytest.fixture(params=[("mysql", dumped_by_mysqldump), ("mariadb", dumped_by_mydumper)], ids=["mysqldump", "mydumper"])
def dumped(
    request: pytest.FixtureRequest, tmp_path: Path, jars: str, spark: SparkSession
) -> Iterator[tuple[Loaded, Callable[[Server, Path], tuple[str, Rows]]]]:
    """A server with a shop, and what dumps it."""
    kind, dump = request.param
    with start_server(kind, tmp_path / "server") as server:
        found = Loaded(server, tmp_path / "loader", jars, spark=lambda: spark)
        found.configure()
        found.execute(*SHOP.strip().splitlines())
        found.create_user()
        yield found, dump


WRITES = (
    "INSERT INTO shop.orders (name, amount) VALUES ('new', RAND()), ('new', RAND())",
    "UPDATE shop.orders SET amount = -amount ORDER BY id LIMIT 20",
    "DELETE FROM shop.orders WHERE name <> 'new' ORDER BY id DESC LIMIT 1",
)


def test_a_dump_is_adopted_and_followed(
    dumped: tuple[Loaded, Callable[[Server, Path], tuple[str, Rows]]], tmp_path: Path, spark: SparkSession
) -> None:
    loaded, dump = dumped
    with writing(loaded, 0.005, *WRITES) as wrote:
        assert wrote.wait(30)
        place, rows = dump(loaded.server, tmp_path / "dump")
        wrote.clear()
        assert wrote.wait(30)
    copy(spark, loaded, rows)
    arguments = ("adopt", "--table", "shop.orders", "--at", place, "--compare", "full")
    document = loaded.json(*arguments)
    (compared,) = document["comparison"]["tables"]
    assert [table["status"] for table in document["tables"]] == ["applied"]
    assert (compared["status"], compared["differences"], compared["error"]) == ("equal", 0, None)
    ((count,),) = counted(loaded)
    assert compared["server_rows"] == compared["warehouse_rows"] == compared["compared_rows"] == count > len(rows)

    loaded.execute("UPDATE shop.orders SET name = 'last' ORDER BY id LIMIT 5")
    loaded.json("run")
    assert loaded.differences(("shop.orders",)) == {"shop.orders": 0}
    before = loaded.snapshots()
    document = loaded.json(*arguments)
    assert [table["status"] for table in document["tables"]] == ["already"]
    assert loaded.snapshots() == before


def copy(spark: SparkSession, loaded: Loaded, rows: Rows) -> None:
    """Load the rows of a dump as anybody would with Spark."""
    session = Warehouse(spark, load_config(str(loaded.config)).source().catalog).session
    session.sql("CREATE NAMESPACE lake.shop")
    texts = [tuple(None if value is None else str(value) for value in row) for row in rows]
    names = [column.split()[0] for column in COLUMNS]
    frame = session.createDataFrame(texts, ", ".join(f"{name} string" for name in names))
    casts = (f"cast({name} as {kind}) as {name}" for name, kind in map(str.split, COLUMNS))
    frame.selectExpr(*casts).writeTo("lake.shop.orders").using("iceberg").create()


def counted(loaded: Loaded) -> Any:
    with connected(loaded.address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM shop.orders")
        return cursor.fetchall()
