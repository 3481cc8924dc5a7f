"""A load while others write: what was there all along is in it, and the log from its position on mends the rest."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loader.model.position import Position
from tests.integration.initial_load.loading import plan_of, read_chunks
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

ROWS = 50_000
WORDS = ["alpha", "Beta", "beta2", "GAMMA", "delta x", "Épsilon", "zeta", "Ω"]

TABLE = (
    "CREATE TABLE t (word VARCHAR(20) COLLATE utf8mb4_general_ci, n INT, v INT, role CHAR(1), PRIMARY KEY (word, n))"
)


def fill(source: SourceServer) -> None:
    """Rows with gaps between their keys. Roles: s stays, u is updated, m moves, d goes."""
    words = ", ".join(f"'{word}'" for word in WORDS)
    source.run(
        TABLE,
        source.deep_recursion,
        f"INSERT INTO t WITH RECURSIVE i AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS})"
        f" SELECT ELT(1 + i % {len(WORDS)}, {words}), i * 7 - IF(i % 3, 0, 2), 0,"
        " SUBSTR('ssssumd', 1 + i % 7, 1) FROM i",
    )


@contextmanager
def writing(source: SourceServer) -> Iterator[threading.Event]:
    """Changes of all kinds until the block ends, a transaction at a time; the event is set once some are done."""
    stop, begun = threading.Event(), threading.Event()

    def write() -> None:
        dice = random.Random(11)
        with source.connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"USE {source.schema}")
            number = 0
            while not stop.is_set():
                number += 1
                low = dice.randrange(7 * ROWS)
                near = f"word = '{dice.choice(WORDS)}' AND n BETWEEN {low} AND {low + 300}"
                far, away = dice.choice(WORDS), 7 * dice.randrange(7 * ROWS)
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE t SET v = v + 1 WHERE role = 'u' AND {near}")
                cursor.execute(f"DELETE FROM t WHERE role = 'd' AND {near} LIMIT 3")
                cursor.execute(
                    f"UPDATE IGNORE t SET word = '{far}', n = {away + 3} WHERE role = 'm' AND {near} LIMIT 1"
                )
                cursor.execute(f"UPDATE IGNORE t SET word = UPPER(word) WHERE role = 'm' AND {near} LIMIT 2")
                cursor.execute(f"INSERT IGNORE INTO t VALUES ('new', {number}, 0, 'u'), ('{far}', {away + 4}, 0, 'm')")
                cursor.execute("ROLLBACK" if number % 17 == 0 else "COMMIT")
                if number == 20:
                    begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield begun
    finally:
        stop.set()
        thread.join()


def key(line: bytes) -> tuple[bytes, ...]:
    return tuple(line.split(b",")[:2])


def test_a_load_under_writes(source: SourceServer, tmp_path: Path) -> None:
    fill(source)
    every = f"SELECT CONCAT('\"', word, '\",', n) FROM {source.schema}.t WHERE role = 's'"
    stays = {str(row[0]).encode() for row in source.run(every)}
    with writing(source) as begun:
        assert begun.wait(60)
        plan = plan_of(source, tmp_path, "t", 997)
        chunks = read_chunks(source, plan)
    assert plan.chunks > 40
    lines = [line for chunk in chunks for line in chunk]
    loaded = {key(line): line for line in lines}
    assert len(loaded) == len(lines)
    assert stays <= {b",".join(found) for found in loaded}
    assert loaded != current(source, tmp_path), "nobody wrote while the table was read"
    replayed = replay(source, plan.position, loaded)
    assert replayed == current(source, tmp_path)


def replay(
    source: SourceServer, position: str, loaded: dict[tuple[bytes, ...], bytes]
) -> dict[tuple[bytes, ...], bytes]:
    """The rows after the log from the position on."""
    rows = dict(loaded)
    for record in source.logged_lines(Position.parse(position), source.log_end())[source.name("t")].splitlines():
        operation, _, _, _, _, line = record.split(b",", 5)
        if operation == b"D":
            rows.pop(key(line), None)
        else:
            rows[key(line)] = line
    return rows


def current(source: SourceServer, root: Path) -> dict[tuple[bytes, ...], bytes]:
    (lines,) = read_chunks(source, plan_of(source, root, "t", 10 * ROWS))
    return {key(line): line for line in lines}
