"""`initial-load --again` is killed while PyIceberg reads the table: each read has all old rows or all new rows.

A later `initial-load` finishes the reload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from infra.servers import start_server
from tests.e2e.loaded import Loaded
from tests.e2e.loads.test_large_loads import server_rows, warehouse_rows

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

ROWS = 2000  # four chunks
POINTS = ("chunk.after:3", "table.before", "insert.after", "publish.before", "publish.after")
"""Where the reload is killed: while it reads, before it writes, and before and after its commit."""
COMMITTED = {"publish.after"}

Rows = Counter[tuple[Any, ...]]


def rows_of(number: int) -> Rows:
    """The rows of the table in a round of the test."""
    return Counter((key, f"round {number}") for key in range(1, ROWS + 1))


class Reader(Thread):
    """Reads the whole table over and over.

    Attributes:
        seen: the rows of each read that differ from those of the read before.
    """

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home, self._ended, self._reads = home, Event(), 0
        self.seen: list[Rows] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ended.is_set():
                found = warehouse_rows(self._home, "shop", "notes")
                if not self.seen or self.seen[-1] != found:
                    self.seen.append(found)
                self._reads += 1
        except Exception as error:  # raised again by the thread of the test
            self.error = error

    def end(self) -> None:
        """Stop after a read that begins from now on."""
        wanted = self._reads + 2
        while self.is_alive() and self._reads < wanted:
            self.join(0.1)
        self._ended.set()
        self.join()
        if self.error:
            raise self.error


@contextmanager
def reading(home: Path) -> Iterator[list[Rows]]:
    """What a reader sees during the block; the last read begins after it."""
    reader = Reader(home)
    reader.start()
    try:
        yield reader.seen
    finally:
        reader.end()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_readers_see_the_old_rows_until_the_commit(kind: str, tmp_path: Path, jars: str) -> None:
    with start_server(kind, tmp_path / "server") as server:
        shop = Loaded(server, tmp_path / "loader", jars)
        shop.configure()
        shop.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.notes (id INT PRIMARY KEY, note VARCHAR(20))",
            "INSERT INTO shop.notes VALUES " + ", ".join(f"({key}, 'round 0')" for key in range(1, ROWS + 1)),
        )
        shop.create_user()
        shop.json("initial-load")
        for number, point in enumerate(POINTS, 1):
            shop.execute(f"UPDATE shop.notes SET note = 'round {number}'")
            old, new = rows_of(number - 1), rows_of(number)
            with reading(shop.home) as seen:
                died = shop.loader("initial-load", "--again", LOADER_FAILPOINT=point)
            assert died.returncode in (-9, 3), (point, died.stderr)
            assert seen == ([old, new] if point in COMMITTED else [old]), point
            with reading(shop.home) as seen:
                assert {one["status"] for one in shop.json("initial-load")["tables"]} <= {"applied", "already"}
            assert seen == ([new] if point in COMMITTED else [old, new]), point
        shop.execute("DELETE FROM shop.notes WHERE id = 1", "UPDATE shop.notes SET note = 'last' WHERE id = 2")
        shop.json("run")
        assert warehouse_rows(shop.home, "shop", "notes") == server_rows(server, "shop", "notes")
