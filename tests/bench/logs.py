"""The two logs of the codec's benchmark, written by a real MySQL server and kept in the cache folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pymysql
from pymysql.cursors import Cursor

from infra.servers import Options, Server, start_server

_OPTIONS: Options = {"max_binlog_size": str(1 << 30), "max_allowed_packet": str(1 << 30)}


class Log(NamedTuple):
    """A log file, and the row changes in it (an update is one)."""

    file: Path
    changes: int


def bulk(rows: int) -> Log:
    """One table of 9 mixed columns in large transactions: inserts, then half as many updates, a tenth of deletes."""
    step = 50_000

    def fill(cursor: Cursor) -> int:
        cursor.execute(
            "CREATE TABLE orders (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, customer INT, sku VARCHAR(40),"
            " title VARCHAR(120), price DECIMAL(12,2), weight DOUBLE, created DATETIME(6), changed TIMESTAMP(3),"
            " state ENUM('new','paid','sent','lost'))"
        )
        cursor.execute("SET cte_max_recursion_depth = 1000000")
        for first in range(0, rows, step):
            cursor.execute(
                "INSERT INTO orders (customer, sku, title, price, weight, created, changed, state)"
                " WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %s)"
                " SELECT i * 7919 %% 100003, CONCAT('SKU-', i), CONCAT('An item of the catalogue, number ', i + %s),"
                " i %% 99991 / 7, i / 3, '2026-01-01' + INTERVAL i * 977 MICROSECOND,"
                " '2026-01-01' + INTERVAL i SECOND, 1 + i %% 4 FROM n",
                (min(step, rows - first), first),
            )
        for first in range(0, rows, step):
            cursor.execute(
                "UPDATE orders SET price = price + 1, state = 'paid' WHERE id > %s AND id <= %s AND id %% 2 = 0",
                (first, first + step),
            )
        cursor.execute("DELETE FROM orders WHERE id %% 10 = 0", ())
        return rows + rows // 2 + rows // 10

    return _made(f"bulk-{rows}", fill)


def small(transactions: int) -> Log:
    """So many transactions of a single row each: an insert, an update or a delete."""

    def fill(cursor: Cursor) -> int:
        cursor.execute(
            "CREATE TABLE events (id INT AUTO_INCREMENT PRIMARY KEY, kind TINYINT, name VARCHAR(60), amount DECIMAL(10,2),"
            " at DATETIME(3))"
        )
        cursor.execute(
            "CREATE PROCEDURE work(IN times INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < times DO"
            " INSERT INTO events (kind, name, amount, at) VALUES (i % 100, CONCAT('event number ', i), i / 100,"
            " '2026-01-01' + INTERVAL i SECOND);"
            " UPDATE events SET amount = amount + 1 WHERE id = i DIV 2; SET i = i + 2; END WHILE; END"
        )
        cursor.execute("CALL work(%s)", (transactions,))
        return transactions

    return _made(f"small-{transactions}", fill)


def _made(name: str, fill: Callable[[Cursor], int]) -> Log:
    cache = Path(os.environ.get("LOADER_CACHE") or Path.home() / ".cache" / "binlog-loader") / "bench"
    file, count = cache / f"{name}.000001", cache / f"{name}.changes"
    if not count.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with (
            TemporaryDirectory(prefix="loader-bench-") as folder,
            start_server("mysql", Path(folder), _OPTIONS) as server,
        ):
            count.write_text(str(_write(server, file, fill)))
    return Log(file, int(count.read_text()))


def _write(server: Server, file: Path, fill: Callable[[Cursor], int]) -> int:
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user, autocommit=True)
    with connection, connection.cursor() as cursor:
        for statement in ("CREATE DATABASE bench", "USE bench", "RESET BINARY LOGS AND GTIDS"):
            cursor.execute(statement)
        changes = fill(cursor)
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        shutil.copy(server.log_dir / cursor.fetchall()[0][0], file)
    return changes
