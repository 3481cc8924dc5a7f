"""A load does not begin before it can see what the log holds, however long commits take after their write to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loader.snapshot.visible import wait_until_visible
from tests.conftest import StartServer
from tests.integration.snapshot.loading import plan_of, read_chunks
from tests.integration.snapshot.source_server import SourceServer

pytestmark = pytest.mark.integration

STALL_SECONDS = 4

# A commit waits for a replica that there is not, after its write to the log and before others see it.
STALLED = {
    "mysql": (
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = {0}",
        "SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON",
        "SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
    ),
    "mariadb": (
        "SET GLOBAL rpl_semi_sync_master_timeout = {0}",
        "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON",
        "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    ),
}


@contextmanager
def stalled_commit(source: SourceServer) -> Iterator[None]:
    """Inside the block, a row is in the log of the server and not yet visible."""
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    source.run(*(statement.format(STALL_SECONDS * 1000) for statement in STALLED[source.kind]))
    before = source.log_end()
    writer = threading.Thread(target=source.run, args=("INSERT INTO t VALUES (1)",))
    writer.start()
    deadline = time.monotonic() + STALL_SECONDS
    while source.log_end() == before:
        assert time.monotonic() < deadline, "the commit did not reach the log"
        time.sleep(0.02)
    assert source.run("SELECT * FROM t") == [], "the commit did not stall"
    try:
        yield
    finally:
        writer.join()


@pytest.mark.parametrize(
    ("kind", "options"),
    [("mysql", {}), ("mysql", {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}), ("mariadb", {})],
    ids=["mysql with gtids", "mysql without gtids", "mariadb"],
)
def test_a_load_waits_for_what_the_log_holds(
    fresh_server: StartServer, tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    source = SourceServer(fresh_server(kind, options))
    with stalled_commit(source):
        plan = plan_of(source, tmp_path, "t", 10)
        assert read_chunks(source, plan) == [[b"1"]]


def test_nothing_is_waited_for_when_nothing_is_committing(source: SourceServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    began = time.monotonic()
    with source.connected() as connection:
        wait_until_visible(connection, source.log_end())
    assert time.monotonic() - began < 1
