"""XA transactions of real servers: their rows count from XA COMMIT, wherever XA PREPARE is in the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.integration.binlog.source import Source, Staged


@pytest.fixture(autouse=True)
def table(source: Source) -> Iterator[None]:
    source.run("DROP TABLE IF EXISTS x", "CREATE TABLE x (id INT PRIMARY KEY, v VARCHAR(20))")
    source.run("INSERT INTO x VALUES (0, '')")
    yield


def prepare(source: Source, xid: str, *statements: str) -> None:
    """In a session of its own, which ends: the transaction stays prepared."""
    session = pymysql.connect(
        host=source.server.host, port=source.server.port, user=source.server.user, database=source.schema
    )
    with session, session.cursor() as cursor:
        for statement in (f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(statement)


def rows(source: Source, staged: Staged) -> list[tuple[str | None, str | None]]:
    """Operation and id of each record, in the order in which they count."""
    return [(record[0], record[5]) for record in staged.records(f"{source.schema}.x")]


def test_rows_count_from_their_commit(source: Source, tmp_path: Path) -> None:
    start = source.mark()
    prepare(source, "'one'", "INSERT INTO x VALUES (1, 'a')", "UPDATE x SET v = 'b' WHERE id = 1")
    prepare(source, "'two','b',7", "INSERT INTO x VALUES (2, 'a')")
    prepare(source, "'lost'", "INSERT INTO x VALUES (9, 'a')")
    source.run("INSERT INTO x VALUES (3, 'plain')")
    source.run("XA COMMIT 'two','b',7", "XA ROLLBACK 'lost'", "XA COMMIT 'one'")
    for transport in (source.files, source.network):
        staged = source.staged(tmp_path / type(transport).__name__, start, transport=transport)
        assert rows(source, staged) == [("I", "3"), ("I", "2"), ("I", "1"), ("U", "1")]
        assert staged.manifest.held == ()
    assert source.rows("SELECT id FROM x ORDER BY id") == [(0,), (1,), (2,), (3,)]


def test_a_commit_in_one_phase_is_an_ordinary_transaction(source: Source, tmp_path: Path) -> None:
    start = source.mark()
    source.run("XA START 'p'", "INSERT INTO x VALUES (1, 'a')", "XA END 'p'", "XA COMMIT 'p' ONE PHASE")
    assert rows(source, source.staged(tmp_path, start)) == [("I", "1")]


def test_a_group_is_held_over_files_and_intervals(source: Source, tmp_path: Path) -> None:
    start = source.mark()
    prepare(source, "'later'", "INSERT INTO x VALUES (1, 'a')")
    source.run("FLUSH BINARY LOGS", "INSERT INTO x VALUES (2, 'a')")
    middle = source.mark()
    source.run("FLUSH BINARY LOGS", "XA COMMIT 'later'")
    first = source.staged(tmp_path / "1", start, middle)
    assert rows(source, first) == [("I", "2")]
    assert [group.file for group in first.manifest.held] == [start.file]
    second = source.staged(tmp_path / "2", middle, held=first.manifest.held)
    assert rows(source, second) == [("I", "1")]
    assert second.manifest.held == ()
    # A chain that begins between PREPARE and COMMIT finds the rows in the log before it.
    assert source.staged(tmp_path / "3", middle).files == second.files
    again = source.staged(tmp_path / "4", middle, held=first.manifest.held, transport=source.network)
    assert again.files == second.files
