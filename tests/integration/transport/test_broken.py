"""A dump that breaks is taken up again: nothing is lost, nothing comes twice, and only from the same log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.servers.process import wait_until
from loader.errors import BinlogFormatError, GapError, LoaderError, SourceUnavailable
from loader.model.position import Interval, Position
from loader.transport import network
from loader.transport.base import LogFile
from loader.transport.network import NetworkTransport
from loader.transport.server.address import ServerAddress
from tests.conftest import StartServer
from tests.integration.binlog.source import Source, extracted
from tests.integration.transport.proxy import Proxy, breaking

pytestmark = pytest.mark.integration
SIZE = 40_000_000
LIMITS = [20_000, 200_001, 1_000_000, 3_000_000, 9_000_000, 20_000_000]


@pytest.fixture(scope="module", params=["mysql", pytest.param("mariadb", marks=pytest.mark.sweep)])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    made = Source(request.getfixturevalue(f"{request.param}_server"), "broken")
    yield made
    made.close()


def work(source: Source) -> tuple[Position, Position]:
    """A log file much longer than what a network holds back, with events of many sizes; where it begins and ends."""
    source.run("FLUSH BINARY LOGS", "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)")
    start = Position(source.mark().basename, source.mark().lognum, 4)
    row = 0
    while source.mark().logpos < SIZE:
        row += 1
        source.run(
            f"INSERT INTO t (v) VALUES (REPEAT('ab{row}', {row**5 % 1_000_003}))", "INSERT INTO t (v) VALUES ('')"
        )
    return start, source.mark()


@pytest.fixture(scope="module")
def log(source: Source) -> tuple[Position, Position]:
    return work(source)


def whole(log: LogFile) -> bytes:
    log.seek(0)
    found = []
    while piece := log.read(1 << 20):
        found.append(piece)
    return b"".join(found)


def through(proxy: Proxy, source: Source, patience: float = 60) -> NetworkTransport:
    address = ServerAddress(host="127.0.0.1", port=proxy.port, user=source.address.user)
    return NetworkTransport(address, patience_seconds=patience)


def kill_dump(source: Source) -> bool:
    """Kill the dump thread, unless it has sent everything."""
    ids = [row[0] for row in source.rows("SHOW PROCESSLIST") if str(row[4]).startswith("Binlog Dump")]
    for number in ids:
        source.run(f"KILL CONNECTION {number}")
    return len(ids) == 1


def check(source: Source, log: tuple[Position, Position], broken: Callable[[Proxy], None], folder: Path) -> None:
    interval = Interval(*log)
    limits = list(LIMITS)
    with breaking(source.server, limits, broken) as proxy:
        there = extracted(source, through(proxy, source), folder / "broken", interval)
        assert proxy.breaks >= 4  # what is on its way when a thread is killed still comes
        assert proxy.breaks + len(limits) == len(LIMITS)
    files = extracted(source, source.files, folder / "files", interval)
    assert there.files == files.files
    assert there.manifest == files.manifest
    assert files.files


def test_a_network_that_is_cut_several_times(source: Source, log: tuple[Position, Position], tmp_path: Path) -> None:
    check(source, log, Proxy.cut, tmp_path)


def test_dump_threads_that_are_killed(source: Source, log: tuple[Position, Position], tmp_path: Path) -> None:
    killed: list[bool] = []
    check(source, log, lambda _: killed.append(kill_dump(source)), tmp_path)
    assert killed.count(True) >= 3


def test_a_connection_that_falls_silent(
    source: Source, log: tuple[Position, Position], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a firewall forgets it: nothing comes any more, and nobody says that it ended."""
    monkeypatch.setattr(network, "_SILENCE_SECONDS", 1)
    over = threading.Event()

    def fall_silent(proxy: Proxy) -> None:
        proxy.let_through()
        over.wait(60)

    interval = Interval(*log)
    with breaking(source.server, [3_000_000, 9_000_000], fall_silent) as proxy:
        there = extracted(source, through(proxy, source), tmp_path / "there", interval)
        assert proxy.breaks == 2
        over.set()
    assert there.files == extracted(source, source.files, tmp_path / "files", interval).files


def test_the_bytes_are_those_of_the_file(source: Source, log: tuple[Position, Position]) -> None:
    """From the start, and from inside: each event at its own place, once; the flag that a file is in use is not sent."""
    start, stop = log
    expected = (source.server.log_dir / start.file).read_bytes()[: stop.logpos]
    with breaking(source.server, list(LIMITS), Proxy.cut) as proxy:
        with through(proxy, source).open(start.file, 4, stop.logpos) as opened:
            found = whole(opened)
        assert proxy.breaks == len(LIMITS)
    assert len(found) == len(expected)
    assert found[:21] + b"\0" + found[22:] == expected[:21] + b"\0" + expected[22:]


@pytest.mark.parametrize("kind", ["mysql", pytest.param("mariadb", marks=pytest.mark.sweep)])
def test_a_server_that_is_restarted(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    source = Source(fresh_server(kind), "restarted")
    start, stop = work(source)
    again: list[bool] = []

    def restart(_: Proxy) -> None:
        source.server.kill() if again else source.server.stop()
        again.append(True)
        source.server.start()

    with breaking(source.server, [1_000_000, 9_000_000], restart) as proxy:
        there = extracted(source, through(proxy, source), tmp_path / "there", Interval(start, stop))
        assert proxy.breaks == 2
    files = extracted(source, source.files, tmp_path / "files", Interval(start, stop))
    assert there.files == files.files
    assert there.manifest == files.manifest


def failure(source: Source, log: tuple[Position, Position], proxy: Proxy, patience: float = 60) -> LoaderError:
    start, stop = log
    with through(proxy, source, patience).open(start.file, 4, stop.logpos) as opened:
        with pytest.raises(LoaderError) as caught:
            whole(opened)
        assert caught.value.where["file"] == start.file
        return caught.value


def test_a_network_that_stays_away_is_given_up(source: Source, log: tuple[Position, Position]) -> None:
    def end(proxy: Proxy) -> None:
        proxy.refuse()
        proxy.cut()

    with breaking(source.server, [3_000_000], end) as proxy:
        began = time.monotonic()
        error = failure(source, log, proxy, patience=1)
    assert isinstance(error, SourceUnavailable)
    assert "could not be continued" in error.what
    assert "refused" in error.why
    assert 0 < int(error.where["position"]) < 3_000_000
    assert 1 < time.monotonic() - began < 30


def test_another_server_behind_the_address_is_noticed(source: Source, fresh_server: StartServer) -> None:
    first, other = Source(fresh_server(source.kind), "first"), fresh_server(source.kind, {"server_id": "2"})
    log = work(first)
    servers = [other]

    def swap(proxy: Proxy) -> None:
        proxy._server = servers[0]
        proxy.cut()

    with breaking(first.server, [3_000_000], swap) as proxy:
        error = failure(first, log, proxy)
    assert isinstance(error, GapError)
    assert "the server changed while the connection was broken" in error.what


def test_a_log_that_was_reset_meanwhile_is_noticed(source: Source, fresh_server: StartServer) -> None:
    made = Source(fresh_server(source.kind), "reset_meanwhile")
    made.run("FLUSH BINARY LOGS")
    log = work(made)
    reset = "RESET BINARY LOGS AND GTIDS" if made.kind == "mysql" else "RESET MASTER"

    def forget(proxy: Proxy) -> None:
        kill_dump(made)
        proxy.cut()
        assert wait_until(lambda: not any("Dump" in str(row[4]) for row in made.rows("SHOW PROCESSLIST")), 20)
        time.sleep(1.1)  # the first event of the new file has another second
        made.run(reset)
        work(made)

    with breaking(made.server, [3_000_000], forget) as proxy:
        error = failure(made, log, proxy)
    assert isinstance(error, GapError | BinlogFormatError)
    made.close()


def test_a_file_that_is_purged_meanwhile_is_a_gap(source: Source, fresh_server: StartServer) -> None:
    made = Source(fresh_server(source.kind), "purged_meanwhile")
    log = work(made)

    def purge(proxy: Proxy) -> None:
        kill_dump(made)  # which holds its file, and may not notice a cut before it sends more
        proxy.cut()
        made.run("FLUSH BINARY LOGS")
        newest = made.mark().file

        def purged() -> bool:
            made.run(f"PURGE BINARY LOGS TO '{newest}'")
            return made.rows("SHOW BINARY LOGS")[0][0] == newest

        assert wait_until(purged, 30)

    with breaking(made.server, [3_000_000], purge) as proxy:
        error = failure(made, log, proxy)
    assert isinstance(error, GapError)
    assert "gone" in error.what
    made.close()


def test_an_end_beyond_that_of_the_file_is_not_filled_from_the_next_one(source: Source) -> None:
    source.run("FLUSH BINARY LOGS", "CREATE TABLE IF NOT EXISTS u (id INT)")
    file = source.mark().file
    source.run("FLUSH BINARY LOGS", *["INSERT INTO u VALUES (1)"] * 50)
    missing = pytest.raises(BinlogFormatError, match="ends before the interval")
    with source.network.open(file, 4, 5_000) as opened, missing:
        whole(opened)


def test_spools_are_removed(
    source: Source, log: tuple[Position, Position], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    start, stop = log
    with source.network.open(start.file, 4, stop.logpos) as opened:
        assert opened.read(10)
    assert not list(tmp_path.iterdir())
