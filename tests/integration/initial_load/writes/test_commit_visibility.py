"""A load does not begin before it can see what the log holds, however long commits take after their write to it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from infra.servers.process import wait_until
from loader.initial_load.loads import Loads
from loader.initial_load.server import commit_visibility
from loader.initial_load.server.commit_visibility import wait_until_visible
from loader.initial_load.whole_table import load_whole_table
from loader.source.server_facts import query
from loader.store.local import LocalStore
from tests.conftest import StartServer
from tests.integration.initial_load.loading import plan_of, read_chunks, spec_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

SECONDS = 60  # the longest that any condition is waited for
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

# From here on a commit waits for a replica that there is not, after its write to the log and before others see it.
STALL = {
    "mysql": (
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = 600000",
        "SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON",
        "SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
    ),
    "mariadb": (
        "SET GLOBAL rpl_semi_sync_master_timeout = 600000",
        "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON",
        "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    ),
}
RELEASE = {
    "mysql": "SET GLOBAL rpl_semi_sync_source_enabled = OFF",
    "mariadb": "SET GLOBAL rpl_semi_sync_master_enabled = OFF",
}
NO_GTIDS = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
PERMISSIVE = {"gtid_mode": "ON_PERMISSIVE"}


class Stalled:
    """A server on which one row of `t` is in the log and not yet visible."""

    def __init__(self, source: SourceServer, pool: ThreadPoolExecutor, session: str) -> None:
        self.source = source
        self._pool = pool
        self.general_log = source.server.data_dir / "data" / "asked.log"
        source.run("INSERT INTO t VALUES (0)", *STALL[source.kind])
        self.start_commit(1, session)
        assert source.run("SELECT * FROM t") == [(0,)], "the commit did not stall"
        source.run(f"SET GLOBAL general_log_file = '{self.general_log}'", "SET GLOBAL general_log = ON")

    def start_commit(self, row: int, session: str = "DO 0") -> None:
        """Insert a row in another session; return once it is in the log."""
        before = self.source.log_end()
        self._pool.submit(self.source.run, session, f"INSERT INTO t VALUES ({row})")
        assert wait_until(lambda: self.source.log_end() > before, SECONDS), "the commit did not reach the log"

    def release(self) -> None:
        self.source.run(RELEASE[self.source.kind])

    def assert_waiting(self, load: Future[Any]) -> None:
        """The load asks the server again, twice, and does not go on."""
        asked = self._asked()
        wait_until(lambda: load.done() or self._asked() >= asked + 2, SECONDS)
        assert not load.done(), f"the load went on: {load.result()}"

    def _asked(self) -> int:
        text = self.general_log.read_text() if self.general_log.exists() else ""
        questions = ("@@global.gtid_owned", "Ongoing_anonymous_transaction_count", "binlog_snapshot_%")
        return sum(text.count(question) for question in questions)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


@contextmanager
def stalled(source: SourceServer, pool: ThreadPoolExecutor, columns: str, session: str = "DO 0") -> Iterator[Stalled]:
    source.run(f"CREATE TABLE t ({columns})")
    made = Stalled(source, pool, session)
    try:
        yield made
    finally:
        made.release()


def load_keyed(source: SourceServer, root: Path) -> Counter[bytes]:
    (rows,) = read_chunks(source, plan_of(source, root, "t", 10))
    return Counter(rows)


def load_keyless(source: SourceServer, root: Path) -> Counter[bytes]:
    """The rows; they must be those that the log has up to the position of the load."""
    loads = Loads(LocalStore(f"file://{root}"), "shop", "0001")
    plan = loads.plan(load_whole_table(spec_of(source, root), source.name("t"), "one"))
    file = loads.chunks(plan)[0].file
    assert file is not None
    return Counter(line.rsplit(b",", 1)[1] for line in (root / file.key).read_bytes().splitlines())


LOADS = pytest.mark.parametrize(
    ("columns", "load"), [("id INT PRIMARY KEY", load_keyed), ("id INT", load_keyless)], ids=["keyed", "keyless"]
)
KINDS = pytest.mark.parametrize(
    ("kind", "options", "session"),
    [
        ("mysql", {}, "DO 0"),
        ("mysql", {}, f"SET GTID_NEXT = '{UUID}:blue:7'"),
        ("mysql", NO_GTIDS, "DO 0"),
        ("mysql", PERMISSIVE, "DO 0"),
        ("mysql", PERMISSIVE, "SET GTID_NEXT = 'ANONYMOUS'"),
        ("mariadb", {}, "DO 0"),
    ],
    ids=["gtids", "tagged gtid", "no gtids", "permissive", "permissive, without a gtid", "mariadb"],
)


@LOADS
@KINDS
def test_a_load_waits_for_what_the_log_holds(
    fresh_server: StartServer, pool: ThreadPoolExecutor, tmp_path: Path,
    kind: str, options: dict[str, str], session: str, columns: str, load: Any,
) -> None:  # fmt: skip
    source = SourceServer(fresh_server(kind, options))
    with stalled(source, pool, columns, session) as server:
        loading = pool.submit(load, source, tmp_path)
        server.assert_waiting(loading)
        server.release()
        assert loading.result(SECONDS) == Counter((b"0", b"1"))


@pytest.mark.parametrize(
    "options", [NO_GTIDS, {"gtid_mode": "OFF_PERMISSIVE"}, PERMISSIVE], ids=lambda one: one["gtid_mode"]
)
def test_a_commit_without_a_gtid_that_waits_for_something_else(
    fresh_server: StartServer, pool: ThreadPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
) -> None:  # fmt: skip
    """As for a slow disk; the stall is that of semi-synchronous replication here, of which nothing is told."""
    source = SourceServer(fresh_server("mysql", options))
    monkeypatch.setattr(commit_visibility, "_waiting", lambda _: 0)
    session = "SET GTID_NEXT = 'ANONYMOUS'" if options == PERMISSIVE else "DO 0"
    with stalled(source, pool, "id INT PRIMARY KEY", session) as server:
        loading = pool.submit(load_keyed, source, tmp_path)
        server.assert_waiting(loading)
        server.release()
        assert loading.result(SECONDS) == Counter((b"0", b"1"))


def test_a_server_that_always_has_a_transaction_without_a_gtid(
    fresh_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a replica that applies such transactions; one that is open owns no place in the log yet."""
    source = SourceServer(fresh_server("mysql", PERMISSIVE))
    monkeypatch.setattr(commit_visibility, "_SETTLE_SECONDS", 0.3)
    with source.connected() as applier, source.connected() as connection:
        query(applier, "SET GTID_NEXT = 'ANONYMOUS'")
        with caplog.at_level("WARNING"):
            wait_until_visible(connection, source.log_end())
        assert "transactions without a GTID stay in progress" in caplog.text
        query(applier, "ROLLBACK")
        caplog.clear()
        wait_until_visible(connection, source.log_end())
        assert not caplog.text


@LOADS
def test_commits_that_start_and_end_while_another_one_is_not_visible(
    fresh_server: StartServer, pool: ThreadPoolExecutor, tmp_path: Path, columns: str, load: Any
) -> None:
    """MySQL tells of all sessions of a server in one text: `uuid:9000002#104:9000001#103`."""
    source = SourceServer(fresh_server("mysql", {}))
    with stalled(source, pool, columns) as server, source.connected() as applier, applier.cursor() as cursor:
        own = source.run("SELECT @@server_uuid")[0][0]
        cursor.execute(f"SET GTID_NEXT = '{own}:9000001'")
        assert str(source.run("SELECT @@global.gtid_owned")[0][0]).count("#") == 2
        loading = pool.submit(load, source, tmp_path)
        server.assert_waiting(loading)
        cursor.execute("ROLLBACK")
        assert str(source.run("SELECT @@global.gtid_owned")[0][0]).count("#") == 1
        server.assert_waiting(loading)
        server.start_commit(2)
        assert str(source.run("SELECT @@global.gtid_owned")[0][0]).count("#") == 2
        server.assert_waiting(loading)
        server.release()
        found = loading.result(SECONDS)
        assert found in (Counter((b"0", b"1")), Counter((b"0", b"1", b"2")))
        assert load is load_keyed or found[b"2"] == 1, "the snapshot was opened again after the log had grown"


def test_nothing_is_waited_for_when_nothing_is_committing(source: SourceServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    began = time.monotonic()
    with source.connected() as connection:
        wait_until_visible(connection, source.log_end())
    assert time.monotonic() - began < 1
