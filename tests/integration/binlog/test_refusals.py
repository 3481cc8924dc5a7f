"""Purged logs, positions inside events or transactions, damage and unsupported work: each has its own error."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers.process import wait_until
from loader.errors import BinlogFormatError, GapError, LoaderError, UnsupportedError
from loader.materialise.plan.ddl_events import writes_rows
from loader.model.position import Interval, Position
from loader.transport.base import LogLags, Transport
from loader.transport.file import FileTransport
from tests.conftest import StartServer
from tests.integration.binlog.source import Source, extracted

pytestmark = pytest.mark.integration
Worked = tuple[Position, list[int], Position]


def error(source: Source, transport: Transport, folder: Path, start: Position, stop: Position) -> LoaderError:
    with pytest.raises(LoaderError) as caught:
        extracted(source, transport, folder, Interval(start, stop))
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    return caught.value


def moved(position: Position, logpos: int) -> Position:
    return Position(position.basename, position.lognum, logpos)


@pytest.fixture
def worked(source: Source) -> Worked:
    """Two transactions of several events: where they start, where their events start, where they end."""
    source.run("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)", "FLUSH BINARY LOGS")
    start = source.mark()
    for _ in range(2):
        source.run("BEGIN", "INSERT INTO t (v) VALUES (REPEAT('x', 500))", "UPDATE t SET v = 'y'", "COMMIT")
    stop = source.mark()
    log = (source.server.log_dir / start.file).read_bytes()
    events, at = [], start.logpos
    while at < stop.logpos:
        events.append(at)
        at += int.from_bytes(log[at + 9 : at + 13], "little")
    return start, events, stop


@pytest.mark.parametrize("transport", ["files", "network"])
def test_a_start_inside_a_transaction(source: Source, worked: Worked, transport: str, tmp_path: Path) -> None:
    start, events, stop = worked
    middle = [at for at in events[2:4] if at != events[0]]
    for number, at in enumerate(middle):
        found = error(source, getattr(source, transport), tmp_path / str(number), moved(start, at), stop)
        assert isinstance(found, BinlogFormatError), found
        assert found.where["file"] == start.file


@pytest.mark.parametrize("transport", ["files", "network"])
def test_a_stop_inside_a_transaction_or_an_event(
    source: Source, worked: Worked, transport: str, tmp_path: Path
) -> None:
    start, events, _ = worked
    inside = error(source, getattr(source, transport), tmp_path / "1", start, moved(start, events[3]))
    assert isinstance(inside, BinlogFormatError)
    assert "inside a transaction" in inside.what
    cut = error(source, getattr(source, transport), tmp_path / "2", start, moved(start, events[3] + 7))
    assert isinstance(cut, BinlogFormatError)
    assert "does not end at the end of an event" in cut.what


def test_a_start_inside_an_event_of_a_file(source: Source, worked: Worked, tmp_path: Path) -> None:
    start, events, stop = worked
    for number, at in enumerate((events[0] + 1, events[2] + 10, events[3] + 30)):
        found = error(source, source.files, tmp_path / str(number), moved(start, at), stop)
        assert isinstance(found, (BinlogFormatError, UnsupportedError)), found


def test_a_start_inside_an_event_of_a_dump(source: Source, worked: Worked, tmp_path: Path) -> None:
    start, events, stop = worked
    found = error(source, source.network, tmp_path, moved(start, events[2] + 10), stop)
    assert isinstance(found, BinlogFormatError), found
    assert "gone" not in found.what


@pytest.mark.parametrize("transport", ["files", "network"])
def test_a_stop_beyond_the_end_of_the_log(source: Source, worked: Worked, transport: str, tmp_path: Path) -> None:
    start, _, stop = worked
    found = error(source, getattr(source, transport), tmp_path, start, moved(stop, stop.logpos + 500))
    assert isinstance(found, LogLags if transport == "files" else BinlogFormatError), found
    assert "ends before the interval" in found.what


def test_every_corrupt_byte_of_a_copied_log_is_found(source: Source, worked: Worked, tmp_path: Path) -> None:
    start, events, stop = worked
    log = bytearray((source.server.log_dir / start.file).read_bytes())
    copy = tmp_path / "logs" / start.file
    copy.parent.mkdir()
    for number, at in enumerate(range(events[0], stop.logpos, 97)):
        damaged = bytearray(log)
        damaged[at] ^= 0x10
        copy.write_bytes(damaged)
        found = error(source, FileTransport(str(copy.parent)), tmp_path / str(number), start, stop)
        assert isinstance(found, (BinlogFormatError, UnsupportedError)), f"byte {at}: {found}"
        assert start.logpos <= int(found.where["position"]) <= at


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_purged_log_is_a_gap(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    source = Source(fresh_server(kind), "log_purged")
    start = source.mark()
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    stop = source.mark()
    source.run("FLUSH BINARY LOGS")
    newest = source.mark().file

    def purged() -> bool:  # MariaDB keeps a log until its engines need it no more, and purges nothing until then
        source.run(f"PURGE BINARY LOGS TO '{newest}'")
        return source.rows("SHOW BINARY LOGS")[0][0] == newest

    assert wait_until(purged, 20)
    for name, transport in (("files", source.files), ("network", source.network)):
        found = error(source, transport, tmp_path / name, start, stop)
        assert isinstance(found, GapError), found
        assert found.where["file"] == start.file
        assert "load all tables again" in found.hint
    source.close()


def test_rows_by_statement_are_found_out(source: Source, tmp_path: Path) -> None:
    source.run("CREATE TABLE IF NOT EXISTS s (id INT PRIMARY KEY)", "DELETE FROM s")
    start = source.mark()
    source.run("SET SESSION binlog_format = STATEMENT", "INSERT INTO s VALUES (1)", "SET SESSION binlog_format = ROW")
    (barrier,) = source.staged(tmp_path, start, side_effects_at=str(source.mark())).manifest.barriers
    assert barrier.tables == (f"{source.schema}.s",)
    assert writes_rows(barrier)


def test_load_data_by_statement_is_found_out(source: Source, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.write_text("1\n2\n")
    source.run("CREATE TABLE IF NOT EXISTS l (id INT PRIMARY KEY)", "DELETE FROM l")
    start = source.mark()
    source.run("SET SESSION binlog_format = STATEMENT")
    source.run(f"LOAD DATA INFILE '{rows}' INTO TABLE l", "SET SESSION binlog_format = ROW")
    (barrier,) = source.staged(tmp_path / "staged", start, side_effects_at=str(source.mark())).manifest.barriers
    assert barrier.tables == (f"{source.schema}.l",)
    assert writes_rows(barrier)


def test_a_partial_json_update_without_its_document_is_refused(source: Source, tmp_path: Path) -> None:
    if source.kind == "mariadb":
        pytest.skip("MariaDB has no partial JSON")
    source.run(
        "CREATE TABLE IF NOT EXISTS j (id INT PRIMARY KEY, j JSON)",
        "REPLACE INTO j VALUES (1, JSON_OBJECT('a', 1, 'b', REPEAT('x', 50)))",
    )
    start = source.mark()
    source.run(
        "SET SESSION binlog_row_value_options = PARTIAL_JSON, SESSION binlog_row_image = MINIMAL",
        "UPDATE j SET j = JSON_SET(j, '$.a', 2)",
        "SET SESSION binlog_row_value_options = '', SESSION binlog_row_image = FULL",
    )
    (found,) = source.staged(tmp_path, start).manifest.left_out
    assert "lacks the document before the update" in found.what
    assert (found.table, found.why.partition(":")[0]) == (f"{source.schema}.j", "column j")


def test_savepoints_and_rollbacks_leave_only_what_was_committed(source: Source, tmp_path: Path) -> None:
    source.run("CREATE TABLE IF NOT EXISTS k (id INT PRIMARY KEY)", "DELETE FROM k")
    start = source.mark()
    source.run("BEGIN", "INSERT INTO k VALUES (1)", "SAVEPOINT a", "INSERT INTO k VALUES (2)", "ROLLBACK TO a",
               "INSERT INTO k VALUES (3)", "COMMIT", "BEGIN", "INSERT INTO k VALUES (4)", "ROLLBACK")  # fmt: skip
    lines = source.staged(tmp_path, start).records(f"{source.schema}.k")
    assert [[line[0], line[5]] for line in lines] == [["I", "1"], ["I", "3"]]
