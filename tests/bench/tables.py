"""The tables of the initial load's benchmark, on a real MySQL server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pymysql
from pymysql.cursors import Cursor

from infra.servers import Options, Server, start_server

_OPTIONS: Options = {"max_allowed_packet": str(1 << 30), "innodb_buffer_pool_size": "1G"}
_NUMBERS = "WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})"


class Shape(NamedTuple):
    """The shape of a table: its columns, the expressions that fill them from a number `i`, and its rows.

    Attributes:
        partition: a numeric column by which a reader through JDBC can split the table.
    """

    columns: str
    values: str
    rows: int
    partition: str = "id"


_MIXED = Shape(
    "id BIGINT UNSIGNED PRIMARY KEY, customer INT, sku VARCHAR(40), title VARCHAR(120), price DECIMAL(12,2),"
    " weight DOUBLE, created DATETIME(6), changed TIMESTAMP(3), state ENUM('new','paid','sent','lost')",
    "i, i * 7919 % 100003, CONCAT('SKU-', i), CONCAT('An item of the catalogue, number ', i), i % 99991 / 7, i / 3,"
    " '2026-01-01' + INTERVAL i * 977 MICROSECOND, '2026-01-01' + INTERVAL i SECOND, 1 + i % 4",
    5_000_000,
)
_WIDE = Shape(
    "id INT PRIMARY KEY, " + ", ".join(f"n{i} INT, t{i} VARCHAR(20), d{i} DECIMAL(10,2)" for i in range(40)),
    "i, " + ", ".join(f"i + {i}, CONCAT('text ', i + {i}), i / {i + 1}" for i in range(40)),
    300_000,
)
_TEXTS = Shape(
    "id INT PRIMARY KEY, body MEDIUMTEXT, document JSON",
    "i, REPEAT(CONCAT('A line of a long text, number ', i, CHAR(10)), 200),"
    " JSON_OBJECT('number', i, 'tags', JSON_ARRAY('a', 'b', i), 'text', REPEAT('x', 2000))",
    60_000,
)
_NARROW = Shape(
    "id INT PRIMARY KEY, a INT, b BIGINT, c DATE, d TINYINT",
    "i, i % 977, i * 13, '2026-01-01' + INTERVAL i % 365 DAY, i % 100",
    8_000_000,
)
_COMPOSITE = Shape(
    "region VARCHAR(20), code VARCHAR(40), id INT, amount DECIMAL(12,2), note VARCHAR(60), PRIMARY KEY (region, code)",
    "CONCAT('region ', i % 50), CONCAT('code-', i), i, i / 7, CONCAT('a note on ', i)",
    3_000_000,
)

SHAPES: Mapping[str, Shape] = {
    "mixed": _MIXED,
    "wide": _WIDE,
    "texts": _TEXTS,
    "narrow": _NARROW,
    "composite": _COMPOSITE,
}
"""By the name of a table, its shape."""


@contextmanager
def empty_server() -> Iterator[Server]:
    """A running server without tables."""
    with TemporaryDirectory(prefix="loader-bench-") as folder, start_server("mysql", Path(folder), _OPTIONS) as server:
        yield server


def fill(server: Server, name: str, shape: Shape, rows: int) -> None:
    """Make a table `bench.<name>` with so many rows. It is not logged, since only the load is measured."""
    with connected(server) as cursor:
        cursor.execute(f"CREATE TABLE bench.{name} ({shape.columns})")
        cursor.execute(f"INSERT INTO bench.{name} {_NUMBERS.format(rows=rows)} SELECT {shape.values} FROM n")
        cursor.execute(f"ANALYZE TABLE bench.{name}")


def fill_many(server: Server, tables: int, rows: int) -> None:
    """Make many small tables."""
    shape = SHAPES["mixed"]
    with connected(server) as cursor:
        for number in range(tables):
            cursor.execute(f"CREATE TABLE bench.small_{number} ({shape.columns})")
            cursor.execute(
                f"INSERT INTO bench.small_{number} {_NUMBERS.format(rows=rows)} SELECT {shape.values} FROM n"
            )


@contextmanager
def connected(server: Server) -> Iterator[Cursor]:
    """A cursor whose statements are not in the log, in the schema `bench`."""
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user, autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("SET cte_max_recursion_depth = 4294967295")
        cursor.execute("CREATE DATABASE IF NOT EXISTS bench")
        yield cursor
