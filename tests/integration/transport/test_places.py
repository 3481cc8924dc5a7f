"""Dumps that begin where COM_BINLOG_DUMP cannot: beyond 4 GiB of a file, and behind a GTID set."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Server
from infra.servers.process import wait_until
from loader.model.gtid import parse_gtid_set
from loader.model.position import Interval
from loader.reader.files.log_files import in_folder
from loader.reader.locations.server import ServerFiles
from loader.reader.locations.uri import resolve
from loader.reader.seek.position_spec import After
from loader.reader.seek.seek import Locator
from loader.transport import dump
from loader.transport.base import LogFile, ServerCannotTell
from tests.conftest import StartServer
from tests.integration.binlog.source import Source, extracted
from tests.integration.transport.test_encrypted import settled

pytestmark = pytest.mark.integration
FAR = 2**32


def block(log: LogFile, start: int, stop: int) -> bytes:
    log.seek(start)
    found = b""
    while len(found) < stop - start and (piece := log.read(stop - start - len(found))):
        found += piece
    return found


def test_a_place_beyond_4_gib(fresh_server: StartServer) -> None:
    """The file's transactions stand in it once more, 4 GiB further on: with the same 32-bit ends and checksums."""
    source = Source(fresh_server("mysql"), "far")
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
    start = source.mark()
    source.run(*(f"INSERT INTO t VALUES ({number})" for number in range(50)))
    stop = source.mark()
    source.run("FLUSH BINARY LOGS")
    source.server.stop()
    path = source.server.log_dir / start.file
    events = path.read_bytes()[start.logpos : stop.logpos]
    with path.open("r+b") as file:
        file.seek(FAR + start.logpos)
        file.write(events)
    source.server.start()
    with source.network.open(start.file, FAR + start.logpos, FAR + stop.logpos) as log:
        assert block(log, FAR + start.logpos, FAR + stop.logpos) == events
        assert block(log, 0, 4) == b"\xfebin"


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
@pytest.mark.parametrize("gtids", [True, False])
def test_a_server_that_cannot_begin_there_is_read_from_the_start(
    kind: str, gtids: bool, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a rehearsal with a nearer limit: with gtid_mode=ON by the other command, else from the file's start."""
    server: Server = request.getfixturevalue("fresh_server")(
        kind, {} if gtids or kind == "mariadb" else {"gtid_mode": "OFF"}
    )
    source = Source(server, "near")
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)", "FLUSH BINARY LOGS")
    source.run(*(f"INSERT INTO t VALUES ({number}, REPEAT('x', {number * 40_000}))" for number in range(40)))
    start = source.mark()
    source.run("UPDATE t SET v = CONCAT(v, '!')")
    stop = source.mark()
    monkeypatch.setattr(dump, "_BEYOND", 1000)
    interval = Interval(start, stop)
    network = extracted(source, source.network, tmp_path / "network", interval)
    files = extracted(source, source.files, tmp_path / "files", interval)
    assert network.files == files.files
    assert network.manifest == files.manifest
    assert files.files


def executed(source: Source) -> str:
    name = "gtid_binlog_pos" if source.kind == "mariadb" else "gtid_executed"
    return str(source.rows(f"SELECT @@global.{name}")[0][0]).replace("\n", "")


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_the_first_transaction_outside_a_gtid_set(kind: str, fresh_server: StartServer) -> None:
    """As the server tells it, and as it is found in the server's files."""
    source = Source(fresh_server(kind), "outside")
    sets = []
    for number in range(12):
        if number in {4, 9}:
            source.run("FLUSH BINARY LOGS")
        source.run(f"CREATE TABLE t{number} (id INT PRIMARY KEY)", f"INSERT INTO t{number} VALUES (1), (2)")
        sets.append(parse_gtid_set(executed(source)))
    assert wait_until(lambda: settled(source, source.mark().file), 30)
    there, files = resolve(f"mysql://root@{source.server.host}:{source.server.port}/"), in_folder(source.server.log_dir)
    assert isinstance(there, ServerFiles)
    found = [there.first_outside(gtids) for gtids in sets]
    assert found == [Locator(files).find(After(gtids)) for gtids in sets]
    assert found == [Locator(there).find(After(gtids)) for gtids in sets]
    assert found == sorted(found)
    assert len(set(found)) == len(sets)
    assert found[-1] == source.mark()


def test_a_set_with_holes_and_one_that_is_not_of_this_server(fresh_server: StartServer) -> None:
    source = Source(fresh_server("mysql"), "holes")
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", *(f"INSERT INTO t VALUES ({number})" for number in range(9)))
    uuid, _, last = executed(source).partition(":1-")
    there = resolve(f"mysql://root@{source.server.host}:{source.server.port}/")
    assert isinstance(there, ServerFiles)
    for text in (f"{uuid}:1-3:5-{last}", f"{uuid}:2-{last}", f"{uuid}:1-2:4:6-8"):
        gtids = parse_gtid_set(text)
        files = in_folder(source.server.log_dir)
        assert there.first_outside(gtids) == Locator(files).find(After(gtids))
    foreign = parse_gtid_set(f"{uuid}:1-{int(last) + 7}")
    with pytest.raises(ServerCannotTell):
        there.first_outside(foreign)
    assert Locator(there).find(After(foreign)) == source.mark()
