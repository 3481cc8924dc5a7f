"""Outages during an initial load: the load goes on once the server answers, and reads no staged chunk again."""

from __future__ import annotations

import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.servers.process import wait_until
from loader.errors import SourceUnavailable
from loader.initial_load.run import stage_tables
from loader.initial_load.server.server_outages import ServerOutages
from loader.initial_load.spec import InitialLoadResult, InitialLoadSpec
from loader.spark.job import rebuild
from loader.spark.workers import Threads
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from tests.conftest import StartServer
from tests.integration.initial_load.loading import spec_of, staged_keys
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.transport.proxy import Proxy, breaking

pytestmark = pytest.mark.integration

ROWS, CHUNK_ROWS = 240, 40
LARGE = 200_000  # bytes of a row; a chunk has more than sockets hold back


def fill(source: SourceServer, row_bytes: int, table: str = "t") -> None:
    source.run(
        f"CREATE TABLE {table} (id INT PRIMARY KEY, note LONGTEXT)",
        f"INSERT INTO {table} WITH RECURSIVE i AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS})"
        f" SELECT i, REPEAT(CHAR(97 + i % 26), {row_bytes}) FROM i",
    )


def spec_through(proxy: Proxy, source: SourceServer, root: Path, read_timeout: float = 600) -> InitialLoadSpec:
    spec = spec_of(source, root, chunk_rows=CHUNK_ROWS)
    changed = {"host": "127.0.0.1", "port": proxy.port, "read_timeout_seconds": read_timeout}
    return spec.model_copy(update={"server": source.address.model_copy(update=changed)})


def check(result: InitialLoadResult, root: Path) -> None:
    (table,) = result.tables
    assert (table.error, table.status, table.rows) == (None, "staged", ROWS)
    assert staged_keys(root, "t") == list(range(1, ROWS + 1))


def kill_readers(source: SourceServer) -> int:
    """Kill the connections that read a chunk, and return their number."""
    ids = source.run(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT%`note`%' AND ID != CONNECTION_ID()"
    )
    for (number,) in ids:
        source.run(f"KILL CONNECTION {number}")
    return len(ids)


def test_readers_that_are_killed_in_a_chunk(source: SourceServer, tmp_path: Path) -> None:
    fill(source, LARGE)
    killed: list[int] = []
    with breaking(source.server, [1_000_000, 3_000_000], lambda _: killed.append(kill_readers(source))) as proxy:
        check(stage_tables(Threads(1), spec_through(proxy, source, tmp_path)), tmp_path)
    assert killed == [1, 1]


@pytest.mark.sweep
def test_readers_that_are_killed_again_and_again(
    mysql: SourceServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The table fails, and says that a retry can help. Another table is loaded."""
    fill(mysql, LARGE)
    fill(mysql, 10, "small")
    with breaking(mysql.server, [1_000_000] * 100, lambda _: kill_readers(mysql)) as proxy:
        result = stage_tables(Threads(1), spec_through(proxy, mysql, tmp_path))
    assert caplog.text.count("the connection to the server was lost") == 10
    small, large = result.tables
    assert (small.table, small.status) == (f"{mysql.schema}.small", "staged")
    assert large.error is not None
    assert isinstance(rebuild(large.error), SourceUnavailable)
    assert result.exit_code == 3


def test_a_connection_that_falls_silent_in_a_chunk(mariadb: SourceServer, tmp_path: Path) -> None:
    """As when a firewall forgets it: nothing comes any more, and nobody says that it ended."""
    fill(mariadb, LARGE)
    over = threading.Event()

    def fall_silent(proxy: Proxy) -> None:
        proxy.let_through()
        over.wait(60)

    with breaking(mariadb.server, [1_000_000], fall_silent) as proxy:
        check(stage_tables(Threads(1), spec_through(proxy, mariadb, tmp_path, read_timeout=1)), tmp_path)
        assert proxy.breaks == 1
        over.set()


def test_a_slow_network_is_no_outage(mysql: SourceServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A chunk takes longer than the server may be silent."""
    fill(mysql, 5000)
    with breaking(mysql.server, [], bytes_per_second=700_000) as proxy:
        spec = spec_through(proxy, mysql, tmp_path, read_timeout=1).model_copy(update={"chunk_rows": ROWS})
        check(stage_tables(Threads(1), spec), tmp_path)
    assert "was lost" not in caplog.text


def test_a_table_that_is_locked(mysql: SourceServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The server does not answer while another session has the lock. The load waits longer than a timeout."""
    fill(mysql, 10)
    spec = spec_of(mysql, tmp_path, chunk_rows=CHUNK_ROWS)
    impatient = mysql.address.model_copy(update={"read_timeout_seconds": 1})
    with ThreadPoolExecutor(1) as pool, mysql.connected() as locking, caplog.at_level(logging.WARNING):
        with locking.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {mysql.schema}.t WRITE")
        load = pool.submit(stage_tables, Threads(1), spec.model_copy(update={"server": impatient}))
        assert wait_until(lambda: "was lost" in caplog.text, 30)
        locking.close()
        check(load.result(60), tmp_path)


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        pytest.param("mysql", "stop", marks=pytest.mark.sweep),
        pytest.param("mysql", "kill", marks=pytest.mark.sweep),
        pytest.param("mariadb", "stop", marks=pytest.mark.sweep),
        ("mariadb", "kill"),
    ],
)
def test_a_server_that_is_restarted_in_a_chunk(
    kind: str, ending: str, fresh_server: StartServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = SourceServer(fresh_server(kind))
    fill(source, LARGE)
    source.run(f"UPDATE t SET note = CONCAT(note, note) WHERE id > {3 * CHUNK_ROWS}")
    before: dict[Path, int] = {}

    def staged() -> dict[Path, int]:
        return {path: path.stat().st_ino for path in tmp_path.rglob("chunks/*.json")}

    def restart(proxy: Proxy) -> None:
        getattr(source.server, ending)()
        before.update(staged())
        proxy.cut()
        proxy.let_through()
        assert wait_until(lambda: "does not answer yet" in caplog.text, 30)
        source.server.start()

    with caplog.at_level(logging.INFO), breaking(source.server, [12_000_000], restart) as proxy:
        check(stage_tables(Threads(1), spec_through(proxy, source, tmp_path)), tmp_path)
        assert proxy.breaks == 1
    assert len(before) == 3
    assert before.items() <= staged().items()


def test_a_server_that_does_not_come_back() -> None:
    """The run waits for it once, and not for each table."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    outages = ServerOutages([ServerAddress(host="127.0.0.1", port=port, user="root")], patience=0.5)
    waited = []
    for name in ("one", "two"):
        began = time.monotonic()
        with pytest.raises(SourceUnavailable, match="the server does not answer"):
            outages.call(name, lambda: asked(port))
        waited.append(time.monotonic() - began >= 0.5)
    assert waited == [True, False]


def asked(port: int) -> None:
    with connected(ServerAddress(host="127.0.0.1", port=port, user="root")):
        pytest.fail("a server answered")
