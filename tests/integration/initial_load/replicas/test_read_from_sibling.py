"""The server that is read follows the same server as the source, so it can be ahead of the source."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.servers.process import wait_until
from loader.initial_load.server import replica
from loader.model.position import Position
from tests.conftest import StartServer
from tests.integration.initial_load.loading import staged_keys
from tests.integration.initial_load.replicas.test_read_from import stage
from tests.integration.initial_load.source_server import SourceServer
from tests.support.replicas import caught_up, replicating

pytestmark = pytest.mark.integration

WAITS = "waiting for the source to have the transactions of the replica"


@pytest.fixture
def servers(fresh_server: StartServer) -> list[SourceServer]:
    """A primary and two replicas, with a table `t`. The first replica is the source, and does not apply changes."""
    found = [SourceServer(fresh_server("mysql", {"server_id": str(number)})) for number in (1, 2, 3)]
    primary, source, sibling = found
    for one in (source, sibling):
        one.run("RESET BINARY LOGS AND GTIDS")  # so that it has no transactions of its own
        one.schema = primary.schema
        replicating(primary.server, one.server)
    primary.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    for one in (source, sibling):
        caught_up(primary.server, one.server)
    source.run("STOP REPLICA SQL_THREAD")
    return found


def test_a_load_ends_where_the_source_has_all_that_was_read(
    servers: list[SourceServer], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, source, sibling = servers
    monkeypatch.setattr(replica, "_WAIT_SECONDS", 1)
    sibling.run("CREATE TABLE own (id INT PRIMARY KEY)")  # which the source never gets
    primary.run("INSERT INTO t VALUES (4)")
    caught_up(primary.server, sibling.server)
    before = source.log_end()
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.INFO):
        load = pool.submit(stage, source, sibling, tmp_path)
        waits = wait_until(lambda: WAITS in caplog.text or load.done(), 60)
        source.run("START REPLICA SQL_THREAD")
        table = load.result(60)["t"]
    assert waits
    assert table.error is None
    assert staged_keys(tmp_path, "t") == [1, 2, 3, 4]
    assert (table.position, table.exact_at) == (str(before), str(source.log_end()))
    assert before < Position.parse(table.exact_at)
    assert WAITS in caplog.text


def test_a_server_that_stays_ahead_is_not_read(
    servers: list[SourceServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, source, sibling = servers
    primary.run("INSERT INTO t VALUES (4)")
    caught_up(primary.server, sibling.server)
    monkeypatch.setattr(replica, "_LONGEST_SECONDS", 0)
    monkeypatch.setattr(replica, "_WAIT_SECONDS", 1)
    error = stage(source, sibling, tmp_path)["t"].error
    assert error is not None
    assert (error["what"], error["retryable"]) == ("the replica has transactions that the source does not have", True)
    assert not list(tmp_path.rglob("part-*"))
