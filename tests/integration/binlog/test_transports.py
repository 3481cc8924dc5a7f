"""Log files and network dumps give the same bytes, from any transaction boundary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.servers import Kind
from loader.model.position import Interval, Position
from tests.conftest import StartServer
from tests.integration.binlog.source import Source, Staged, extracted

pytestmark = pytest.mark.integration


def work(source: Source) -> list[Position]:
    """Transactions of many sizes in a log file of their own; the marks between them."""
    source.run(
        "FLUSH BINARY LOGS", "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT, b BLOB)"
    )
    marks = [Position(source.mark().basename, source.mark().lognum, 4), source.mark()]
    for size in (1, 100, 9_000, 70_000, 3):
        source.run("BEGIN")
        for _ in range(4):
            source.run(f"INSERT INTO t (v, b) VALUES (REPEAT('é\"', {size}), REPEAT(X'00FF', {min(size, 9000)}))")
        source.run(f"UPDATE t SET v = CONCAT(v, '!') WHERE id % {size + 2} = 1", "SAVEPOINT s", "COMMIT")
        marks.append(source.mark())
    source.run("ALTER TABLE t COMMENT 'changed'", "DELETE FROM t WHERE id % 3 = 0")
    return [*marks, source.mark()]


def both(source: Source, start: Position, stop: Position, folder: Path) -> tuple[Staged, Staged]:
    return tuple(  # type: ignore[return-value]
        extracted(source, transport, folder / name, Interval(start, stop))
        for name, transport in (("files", source.files), ("network", source.network))
    )


def check(source: Source, folder: Path) -> None:
    marks = work(source)
    pairs = [(marks[0], marks[-1]), (marks[3], marks[-1]), (marks[2], marks[4]), (marks[-2], marks[-1])]
    for number, (start, stop) in enumerate(pairs):
        files, network = both(source, start, stop, folder / str(number))
        assert network.files == files.files
        assert network.manifest == files.manifest
        assert files.files
        balance = files.manifest.balance
        assert balance is not None
        assert balance.bytes == stop.logpos - start.logpos


def test_the_same_bytes_from_the_start_and_from_the_middle(source: Source, tmp_path: Path) -> None:
    check(source, tmp_path)


@pytest.fixture(params=["mysql", "mariadb"])
def without_checksums(request: pytest.FixtureRequest, fresh_server: StartServer) -> Iterator[Source]:
    kind: Kind = request.param
    source = Source(fresh_server(kind, {"binlog_checksum": "NONE"}), "log_plain")
    yield source
    source.close()


def test_the_same_bytes_without_checksums(without_checksums: Source, tmp_path: Path) -> None:
    check(without_checksums, tmp_path)


def test_an_interval_over_several_files(source: Source, tmp_path: Path) -> None:
    start = work(source)[1]
    work(source)
    stop = work(source)[-1]
    assert stop.lognum == start.lognum + 2
    files, network = both(source, start, stop, tmp_path)
    assert network.files == files.files
    assert network.manifest == files.manifest
    assert {file.key.rpartition("part-")[2][:6] for file in files.manifest.files} == {
        f"{number:06d}" for number in range(start.lognum, stop.lognum + 1)
    }


def test_a_row_of_more_than_16_mib_comes_in_several_packets(source: Source, tmp_path: Path) -> None:
    source.run("CREATE TABLE IF NOT EXISTS large (id INT PRIMARY KEY, b LONGBLOB)", "DELETE FROM large")
    start = source.mark()
    source.run("INSERT INTO large VALUES (1, REPEAT('x', 9000000))", "UPDATE large SET b = REPEAT('y', 9000000)")
    files, network = both(source, start, source.mark(), tmp_path)
    assert network.files == files.files
    (line,) = (line for line in files.records(f"{source.schema}.large") if line[0] == "U")
    assert line[6] == "79" * 9_000_000
    source.run("DROP TABLE large")
