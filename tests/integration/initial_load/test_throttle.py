"""Readers wait while the server is busy, and while a replica is behind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from pymysql.err import MySQLError

from infra.servers.process import wait_until
from loader.initial_load.run import stage_tables
from loader.initial_load.server.read_limits import ReadLimits
from loader.initial_load.server.throttle import read_load, take_reader_place
from loader.resources import sql
from loader.source.server_facts import query
from loader.spark.job import rebuild
from loader.spark.workers import Threads
from loader.transport.server.connection import AccessDenied, connected
from tests.conftest import StartServer
from tests.integration.initial_load.loading import spec_of, staged_keys
from tests.integration.initial_load.source_server import SourceServer
from tests.support.replicas import caught_up, options_of_replica, replicating

pytestmark = pytest.mark.integration

_ALL = ReadLimits(max_threads_running=1, max_replica_lag_seconds=1)


@contextmanager
def busy(source: SourceServer, count: int) -> Iterator[None]:
    """Sessions that run a statement until the end of the block."""
    sleeping = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'"

    def sleep() -> None:
        with source.connected() as connection, connection.cursor() as cursor:
            try:
                cursor.execute("SELECT SLEEP(600)")
            except MySQLError:
                return

    threads = [threading.Thread(target=sleep, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: len(source.run(sleeping)) == count, 30)
    try:
        yield
    finally:
        for (number,) in source.run(sleeping):
            source.run(f"KILL QUERY {number}")
        for thread in threads:
            thread.join(30)


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_readers_wait_for_a_busy_server(
    kind: str, fresh_server: StartServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = SourceServer(fresh_server(kind))
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    source.run("CREATE TABLE bag (id INT)", "INSERT INTO bag VALUES (4)")
    with source.connected() as connection:
        idle = read_load(connection, _ALL)
        assert (idle.threads_running >= 1, idle.lag_seconds) == (True, 0)
        with busy(source, 8):  # the server's own threads come and go
            assert read_load(connection, _ALL).threads_running >= 8
    limits = ReadLimits(max_threads_running=idle.threads_running + 4)
    spec = spec_of(source, tmp_path, chunk_rows=2).model_copy(update={"limits": limits})
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        with busy(source, 8):
            load = pool.submit(stage_tables, Threads(1), spec)
            assert wait_until(lambda: caplog.text.count("waiting before the next chunk: the server has") == 2, 30)
            assert not list(tmp_path.rglob("part-*"))
        assert [table.error for table in load.result(30).tables] == [None, None]
    assert (staged_keys(tmp_path, "t"), staged_keys(tmp_path, "bag")) == ([1, 2, 3], [4])


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_readers_of_all_loaders_share_the_places_on_a_server(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = SourceServer(request.getfixturevalue(f"{kind}_server"))
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    source.run("CREATE TABLE bag (id INT)", "INSERT INTO bag VALUES (4)")
    limits = ReadLimits(readers=2)
    spec = spec_of(source, tmp_path, chunk_rows=2).model_copy(update={"limits": limits})
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        with source.connected() as other, source.connected() as another:
            take_reader_place(other, limits)
            take_reader_place(another, limits)
            load = pool.submit(stage_tables, Threads(1), spec)
            readers = ", ".join(str(query(one, "SELECT CONNECTION_ID()")[0][0]) for one in (other, another))
            full = (
                "waiting before the next chunk: 2 readers of this loader or of others read the server, in its connections"
                f" {readers}; if the machine of a reader is gone: KILL CONNECTION"
            )
            assert wait_until(lambda: caplog.text.count(full) == 2, 30)
            assert not list(tmp_path.rglob("part-*"))
        assert [table.error for table in load.result(30).tables] == [None, None]
    assert (staged_keys(tmp_path, "t"), staged_keys(tmp_path, "bag")) == ([1, 2, 3], [4])
    source.drop()


def delay(replica: SourceServer, seconds: int) -> None:
    """Make the replica apply changes so late."""
    if replica.kind == "mysql":
        change = f"CHANGE REPLICATION SOURCE TO SOURCE_DELAY={seconds}"
        replica.run("STOP REPLICA SQL_THREAD", change, "START REPLICA SQL_THREAD")
    else:
        replica.run("STOP SLAVE", f"CHANGE MASTER TO MASTER_DELAY={seconds}", "START SLAVE")


@pytest.mark.parametrize("kind", [pytest.param("mysql", marks=pytest.mark.sweep), "mariadb"])
def test_readers_wait_for_a_replica_that_is_behind(
    kind: str, fresh_server: StartServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    primary = SourceServer(fresh_server(kind))
    replica = SourceServer(fresh_server(kind, options_of_replica(kind)))
    replicating(primary.server, replica.server)
    replica.drop()
    primary.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    replica.schema = primary.schema
    caught_up(primary.server, replica.server)
    spec = spec_of(replica, tmp_path, chunk_rows=2).model_copy(update={"limits": ReadLimits(max_replica_lag_seconds=1)})
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        delay(replica, 600)
        primary.run("INSERT INTO t VALUES (4)")
        assert wait_until(lambda: lag(replica) not in {0, 1, None}, 30)
        load = pool.submit(stage_tables, Threads(1), spec)
        assert wait_until(lambda: "s behind its source, more than 1 s" in caplog.text, 30)
        assert not list(tmp_path.rglob("part-*"))
        delay(replica, 0)
        assert [table.error for table in load.result(30).tables] == [None]
    assert staged_keys(tmp_path, "t") in ([1, 2, 3], [1, 2, 3, 4])
    replica.run("STOP REPLICA" if kind == "mysql" else "STOP SLAVE")
    assert lag(replica) is None
    replica.run("RESET REPLICA ALL" if kind == "mysql" else "RESET SLAVE ALL")
    assert lag(replica) == 0


def lag(source: SourceServer) -> int | None:
    with source.connected() as connection:
        return read_load(connection, _ALL).lag_seconds


def test_the_user_needs_a_privilege_for_the_lag(source: SourceServer, tmp_path: Path) -> None:
    """MySQL shows the replication with REPLICATION CLIENT, which the loader needs anyway."""
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    user = f"u_{source.schema}"
    grants = sql("source/grants").replace("'loader'", f"'{user}'").replace("shop", source.schema)
    source.run(f"CREATE USER '{user}'@'%'", *grants.split(";"))
    server = source.address.model_copy(update={"user": user})
    limits = {"limits": ReadLimits(max_replica_lag_seconds=1), "server": server}
    try:
        (table,) = stage_tables(Threads(1), spec_of(source, tmp_path).model_copy(update=limits)).tables
        if source.kind == "mariadb":
            assert table.error is not None
            error = rebuild(table.error)
            assert isinstance(error, AccessDenied)
            assert "MONITOR" in error.why
            source.run(f"GRANT REPLICA MONITOR ON *.* TO '{user}'@'%'")
            (table,) = stage_tables(Threads(1), spec_of(source, tmp_path).model_copy(update=limits)).tables
        assert table.status == "staged"
        with connected(server) as connection:
            assert read_load(connection, _ALL).lag_seconds == 0
    finally:
        source.run(f"DROP USER '{user}'@'%'")
