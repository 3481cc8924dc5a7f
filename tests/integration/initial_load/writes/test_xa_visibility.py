"""XA transactions of MariaDB: its log and its snapshots' positions have XA COMMIT before others see the rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from loader.initial_load.server import commit_visibility, consistent_snapshot
from loader.initial_load.server.commit_visibility import count_xa_commits, wait_until_visible
from loader.initial_load.server.consistent_snapshot import open_snapshot
from loader.model.position import Position
from loader.source.server_facts import log_end, query
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.initial_load.writes.test_commit_visibility import LOADS, SECONDS

pytestmark = pytest.mark.integration

WRITERS = 4


@contextmanager
def prepared(source: SourceServer, row: int) -> Iterator[Connection[Any]]:
    """A session with a prepared transaction `x` that has inserted a row into `t`."""
    with source.connected() as connection:
        query(connection, f"USE `{source.schema}`")
        insert(connection, "x", f"INSERT INTO t VALUES ({row})")
        try:
            yield connection
        finally:
            if query(connection, "XA RECOVER"):
                query(connection, "XA ROLLBACK 'x'")


def insert(connection: Connection[Any], name: str, *statements: str) -> None:
    """Prepare an XA transaction."""
    for statement in (f"XA START '{name}'", *statements, f"XA END '{name}'", f"XA PREPARE '{name}'"):
        query(connection, statement)


@LOADS
def test_a_load_waits_for_transactions_that_may_be_committing(
    mariadb: SourceServer, tmp_path: Path, columns: str, load: Any
) -> None:
    """XA RECOVER does not tell them from prepared transactions."""
    mariadb.run(f"CREATE TABLE t ({columns})", "INSERT INTO t VALUES (0)")
    with prepared(mariadb, 1) as writer, ThreadPoolExecutor(1) as pool:
        loading: Future[Any] = pool.submit(load, mariadb, tmp_path)
        time.sleep(1)
        assert not loading.done()
        query(writer, "XA COMMIT 'x'")
        assert loading.result(SECONDS)[b"1"] == 1


def test_a_transaction_that_stays_prepared_is_no_commit(
    mariadb: SourceServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mariadb.run("CREATE TABLE t (id INT)")
    monkeypatch.setattr(commit_visibility, "_XA_SECONDS", 0.3)
    monkeypatch.setattr(commit_visibility, "_LINGERING", {})
    with prepared(mariadb, 1), mariadb.connected() as connection, caplog.at_level("WARNING"):
        wait_until_visible(connection, mariadb.log_end())
    assert "1 XA transactions stay prepared" in caplog.text


def test_loads_of_many_tables_wait_once_for_a_transaction_that_stays_prepared(
    mariadb: SourceServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mariadb.run("CREATE TABLE t (id INT)")
    monkeypatch.setattr(commit_visibility, "_XA_SECONDS", 0.3)
    monkeypatch.setattr(commit_visibility, "_LINGERING", {})

    def waits(connection: Connection[Any]) -> int:
        caplog.clear()
        wait_until_visible(connection, mariadb.log_end())
        return len(caplog.records)

    with prepared(mariadb, 1), mariadb.connected() as connection, caplog.at_level("WARNING"):
        assert [waits(connection) for _ in range(3)] == [1, 0, 0]
        with mariadb.connected() as other:
            query(other, f"USE `{mariadb.schema}`")
            insert(other, "y", "INSERT INTO t VALUES (2)")
            query(other, "XA COMMIT 'y'")
        assert [waits(connection) for _ in range(2)] == [1, 0]


def test_a_snapshot_during_which_a_transaction_is_committed_is_opened_again(
    mariadb: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mariadb.run("CREATE TABLE t (id INT)")
    waits: list[Position] = []
    monkeypatch.setattr(consistent_snapshot, "wait_until_visible", lambda _, position: waits.append(position))
    with prepared(mariadb, 1) as writer, mariadb.connected() as connection:

        def count(_connection: Connection[Any]) -> int:
            """Count, and then commit a transaction for which nobody has waited."""
            found = count_xa_commits(connection)
            if len(waits) == 1:
                query(writer, "XA COMMIT 'x'")
            return found

        monkeypatch.setattr(consistent_snapshot, "count_ended_xa_commits", count)
        assert open_snapshot(connection) == mariadb.log_end()
    assert len(waits) == 2


@pytest.mark.sweep
def test_loads_among_many_transactions(source: SourceServer) -> None:
    """A snapshot has the transactions of the log up to its position, and a read those up to a position waited for."""
    source.run("CREATE TABLE t (id BIGINT)", "CREATE TABLE k (id BIGINT PRIMARY KEY)")
    done, commits = threading.Event(), []

    def write(number: int) -> None:
        with source.connected() as connection, source.connected() as asking:
            query(connection, f"USE `{source.schema}`")
            row = number
            while not done.is_set():
                insert(connection, f"w{number}", f"INSERT INTO t VALUES ({row})", f"INSERT INTO k VALUES ({row})")
                before = log_end(asking)
                query(connection, f"XA COMMIT 'w{number}'")
                commits.append((row, before, log_end(asking)))
                row += WRITERS

    found = []
    with ThreadPoolExecutor(WRITERS) as pool, source.connected() as connection:
        writers = [pool.submit(write, number) for number in range(WRITERS)]
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                position = open_snapshot(connection)
                found.append((position, position, rows_of(source, connection, "t")))
                query(connection, "ROLLBACK")
                position = log_end(connection)
                wait_until_visible(connection, position)
                rows = rows_of(source, connection, "k")
                found.append((position, log_end(connection), rows))
        finally:
            done.set()
        for writer in writers:
            writer.result(SECONDS)
    assert len(found) > 10
    for low, high, rows in found:
        assert {row for row, _, logged in commits if logged <= low} <= rows
        assert rows <= {row for row, before, _ in commits if before < high}


def rows_of(source: SourceServer, connection: Connection[Any], table: str) -> set[int]:
    return {int(row) for (row,) in query(connection, f"SELECT id FROM `{source.schema}`.{table}")}
