"""The logs of the codec's benchmark, written by a real MySQL server and kept in the cache folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import pymysql
from pymysql.cursors import Cursor

from infra.servers import Options, Server, start_server
from infra.servers.cache import cache_folder

_OPTIONS: Options = {"max_binlog_size": str(1 << 30), "max_allowed_packet": str(1 << 30)}


class Log(NamedTuple):
    """A log file, or a folder of them, and the row changes in it (an update is one)."""

    file: Path
    changes: int


def bulk(rows: int) -> Log:
    """One table of 9 mixed columns in large transactions: inserts, then half as many updates, a tenth of deletes."""
    return _made(f"bulk-{rows}", lambda cursor: _fill_bulk(cursor, rows))


def small(transactions: int) -> Log:
    """So many transactions of a single row each: inserts and updates in turn."""
    return _made(f"small-{transactions}", lambda cursor: _fill_small(cursor, transactions))


def narrow(rows: int) -> Log:
    """One insert of rows with three short values: 20 bytes of log each."""
    return _made(f"narrow-{rows}", lambda cursor: _fill_narrow(cursor, rows))


@contextmanager
def repeated(log: Log, times: int) -> Iterator[Log]:
    """A folder with the log so many times over, as a server leaves one file after another."""
    with TemporaryDirectory(prefix="loader-bench-") as folder:
        for number in range(1, times + 1):
            Path(folder, f"{log.file.stem}.{number:06d}").symlink_to(log.file)
        yield Log(Path(folder), times * log.changes)


@contextmanager
def live(kind: Literal["bulk", "small"], size: int) -> Iterator[tuple[Server, Log]]:
    """A running server whose first log file is of that kind."""
    with TemporaryDirectory(prefix="loader-bench-") as folder, start_server("mysql", Path(folder), _OPTIONS) as server:
        fill = _fill_bulk if kind == "bulk" else _fill_small
        yield server, Log(*_written(server, lambda cursor: fill(cursor, size)))


@contextmanager
def empty() -> Iterator[Server]:
    """A running server with a schema `bench` and no table."""
    with TemporaryDirectory(prefix="loader-bench-") as folder, start_server("mysql", Path(folder), _OPTIONS) as server:
        with _connected(server) as cursor:
            cursor.execute("CREATE DATABASE bench")
        yield server


def fill(server: Server, kind: Literal["bulk", "small"], size: int) -> Log:
    """Make a table there and change it, in a log file of its own; of bulk in three transactions."""
    with _connected(server) as cursor:
        cursor.execute("USE bench")
        cursor.execute("DROP TABLE IF EXISTS orders, events")
        cursor.execute("DROP PROCEDURE IF EXISTS work")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        name = cursor.fetchall()[-1][0]
        changes = _fill_bulk(cursor, size, step=2 * size) if kind == "bulk" else _fill_small(cursor, size)
        cursor.execute("FLUSH BINARY LOGS")
    return Log(server.log_dir / name, changes)


def copy(server: Server, tables: Sequence[str]) -> None:
    """Make a copy of each table there, named `<table>_copy`, in the log."""
    with _connected(server) as cursor:
        for table in tables:
            cursor.execute(f"CREATE TABLE bench.{table}_copy LIKE bench.{table}")
            cursor.execute(f"INSERT INTO bench.{table}_copy SELECT * FROM bench.{table}")


@contextmanager
def _connected(server: Server) -> Iterator[Cursor]:
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user, autocommit=True)
    with connection, connection.cursor() as cursor:
        yield cursor


def _fill_bulk(cursor: Cursor, rows: int, step: int = 50_000) -> int:
    cursor.execute(
        "CREATE TABLE orders (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, customer INT, sku VARCHAR(40),"
        " title VARCHAR(120), price DECIMAL(12,2), weight DOUBLE, created DATETIME(6), changed TIMESTAMP(3),"
        " state ENUM('new','paid','sent','lost'))"
    )
    cursor.execute("SET cte_max_recursion_depth = 10000000")
    changes = 0
    for first in range(0, rows, step):
        changes += cursor.execute(
            "INSERT INTO orders (customer, sku, title, price, weight, created, changed, state)"
            " WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %s)"
            " SELECT i * 7919 %% 100003, CONCAT('SKU-', i), CONCAT('An item of the catalogue, number ', i + %s),"
            " i %% 99991 / 7, i / 3, '2026-01-01' + INTERVAL i * 977 MICROSECOND,"
            " '2026-01-01' + INTERVAL i SECOND, 1 + i %% 4 FROM n",
            (min(step, rows - first), first),
        )
    cursor.execute("SELECT MAX(id) FROM orders")  # numbers are given out in blocks, with gaps
    for first in range(0, int(cursor.fetchall()[0][0]), step):
        changes += cursor.execute(
            "UPDATE orders SET price = price + 1, state = 'paid' WHERE id > %s AND id <= %s AND id %% 2 = 0",
            (first, first + step),
        )
    return changes + cursor.execute("DELETE FROM orders WHERE id % 10 = 0")


def _fill_narrow(cursor: Cursor, rows: int) -> int:
    cursor.execute("CREATE TABLE narrow (id INT PRIMARY KEY, n INT, v VARCHAR(10))")
    cursor.execute("SET cte_max_recursion_depth = 10000000")
    return cursor.execute(
        "INSERT INTO narrow WITH RECURSIVE i AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM i WHERE i + 1 < %s)"
        " SELECT i, i * 7919 %% 100003, CONCAT('row ', i) FROM i",
        (rows,),
    )


def _fill_small(cursor: Cursor, transactions: int) -> int:
    cursor.execute(
        "CREATE TABLE events (id INT AUTO_INCREMENT PRIMARY KEY, kind TINYINT, name VARCHAR(60), amount DECIMAL(10,2),"
        " at DATETIME(3))"
    )
    cursor.execute(
        "CREATE PROCEDURE work(IN times INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < times DO"
        " INSERT INTO events (kind, name, amount, at) VALUES (i % 100, CONCAT('event number ', i), i / 100,"
        " '2026-01-01' + INTERVAL i SECOND);"
        " UPDATE events SET amount = amount + 1 WHERE id = i DIV 2 + 1; SET i = i + 2; END WHILE; END"
    )
    cursor.execute("CALL work(%s)", (transactions,))
    return transactions


def _made(name: str, fill: Callable[[Cursor], int]) -> Log:
    cache = cache_folder() / "bench"
    file, count = cache / f"{name}.000001", cache / f"{name}.changes"
    if not count.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with (
            TemporaryDirectory(prefix="loader-bench-") as folder,
            start_server("mysql", Path(folder), _OPTIONS) as server,
        ):
            found, changes = _written(server, fill)
            shutil.copy(found, file)
        count.write_text(str(changes))
    return Log(file, int(count.read_text()))


def _written(server: Server, fill: Callable[[Cursor], int]) -> tuple[Path, int]:
    with _connected(server) as cursor:
        for statement in ("CREATE DATABASE bench", "USE bench", "RESET BINARY LOGS AND GTIDS"):
            cursor.execute(statement)
        changes = fill(cursor)
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        return server.log_dir / cursor.fetchall()[0][0], changes
