"""Initial loads while others write: once the log is applied past the position, the rows are those of the server.

`tests/e2e/loads/test_large_loads.py` compares the tables of the warehouse.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from infra.servers.process import wait_until
from loader import pipeline
from tests.integration.initial_load.folding import Rows, extract_all, folded_rows, load
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.pipeline.conftest import settings_of

pytestmark = pytest.mark.integration

_SHORT = {("mysql", 2), ("mariadb", 4)}
ROWS = 3000
KEYS = {"orders": 1, "names": 2, "bag": 0}


class Writer(threading.Thread):
    """Inserts, updates, key changes and deletes in all tables, and statements on other tables."""

    def __init__(self, source: SourceServer, seed: int) -> None:
        super().__init__(daemon=True)
        self._source = source
        self._dice = random.Random(seed)
        self._seed = seed
        self._done = threading.Event()
        self.written = 0

    def run(self) -> None:
        with self._source.connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"USE `{self._source.schema}`")
            while not self._done.is_set():
                for statement in self._statements():
                    cursor.execute(statement)
                self.written += 1

    def stop(self) -> None:
        self._done.set()
        self.join()

    def goes_on(self, rounds: int) -> None:
        """Wait for this many more rounds of writes."""
        goal = self.written + rounds
        assert wait_until(lambda: self.written >= goal or not self.is_alive(), 60)
        assert self.is_alive()

    def _statements(self) -> list[str]:
        key, other = self._dice.randrange(ROWS), self._dice.randrange(ROWS)
        name = self._dice.choice(["Ada", "ada", "Zoë", "zoe", "x" * 40])
        mine = f"other_{self._seed}"
        return [
            "BEGIN",
            f"REPLACE INTO orders VALUES ({key}, '{name}')",
            f"UPDATE IGNORE orders SET id = {2 * ROWS + other} WHERE id = {other}",
            f"DELETE FROM orders WHERE id = {self._dice.randrange(3 * ROWS)}",
            f"UPDATE names SET note = '{name}' WHERE number = {key}",
            f"UPDATE IGNORE names SET name = '{name}' WHERE number = {other}",
            f"INSERT INTO bag VALUES ({key % 7}, '{name}')",
            f"DELETE FROM bag WHERE a = {other % 7} LIMIT 1",
            "ROLLBACK" if self._dice.random() < 0.1 else "COMMIT",
            f"CREATE TABLE IF NOT EXISTS {mine} (a INT PRIMARY KEY)",
            f"ALTER TABLE {mine} ADD b{self.written} INT",
            f"DROP TABLE {mine}",
        ]


def create_tables(source: SourceServer) -> None:
    source.run(
        "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(100))",
        "CREATE TABLE names (name VARCHAR(40) COLLATE utf8mb4_general_ci, number INT, note VARCHAR(40),"
        " PRIMARY KEY (name, number))",
        "CREATE TABLE bag (a INT, b VARCHAR(40))",
        source.deep_recursion,
        *(
            f"INSERT INTO {table} WITH RECURSIVE i AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS - 1})"
            f" SELECT {values} FROM i"
            for table, values in {
                "orders": "i, 'n'",
                "names": "CHAR(97 + i % 26), i, 'n'",
                "bag": "i % 7, 'n'",
            }.items()
        ),
    )


@pytest.mark.parametrize(
    ("kind", "readers"),
    [
        pytest.param(kind, readers, marks=() if (kind, readers) in _SHORT else pytest.mark.sweep)
        for kind in ("mysql", "mariadb")
        for readers in (1, 2, 4)
    ],
)
def test_a_load_under_writes(request: pytest.FixtureRequest, tmp_path: Path, kind: str, readers: int) -> None:
    source: SourceServer = request.getfixturevalue(kind)
    create_tables(source)
    settings = settings_of(source.address, f"{source.schema}.*", tmp_path).model_copy(update={"chunk_rows": 100})
    settings = settings.model_copy(
        update={"tables": settings.tables.model_copy(update={"exclude": (f"{source.schema}.other_*",)})}
    )
    pipeline.begin(settings)
    writers = [Writer(source, seed) for seed in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.goes_on(5)
    loads = load(settings, readers)
    for writer in writers:
        writer.goes_on(5)
    for writer in writers:
        writer.stop()
    assert [table.error for table in loads.tables] == [None] * 3
    assert min(table.chunks for table in loads.tables if "bag" not in table.table) > 20
    extract_all(settings)
    assert folded_rows(settings, loads, KEYS) == {table: rows_of(source, table) for table in KEYS}


def rows_of(source: SourceServer, table: str) -> Rows:
    return Counter(tuple(str(value) for value in row) for row in source.run(f"SELECT * FROM {table}"))
