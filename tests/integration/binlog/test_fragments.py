"""Row events of a real MariaDB, cut into fragments as 12.3 does it: the same rows, the same bytes but for the seqno.

No server that writes fragments can be had here, so a server's own log is cut by the rules of the sources of 12.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.servers import Server
from loader.model.position import Position
from loader.transport.file import FileTransport
from tests.integration.binlog.source import Source, Staged
from tests.unit.binlog.fragments import events, fragmented, of_bytes

_WORK = (
    "CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT, b DECIMAL(20,4), c DATETIME(6), d ENUM('x','y'), e BIT(9), f DOUBLE)",
    "INSERT INTO t VALUES (1, REPEAT('é', 9000), 1.5, '2024-02-29 12:34:56.123456', 'y', 257, 0.1), (2, NULL, NULL, NULL,"
    " NULL, NULL, NULL), (3, 'a\\nb\"', -0.0001, NULL, 'x', 0, -1e300)",
    "CREATE TABLE u (id INT PRIMARY KEY, n INT)",
    "BEGIN", "INSERT INTO u SELECT seq, seq FROM seq_1_to_3000", "UPDATE t SET a = CONCAT(COALESCE(a, ''), 'z'), b = 7",
    "UPDATE t SET id = id + 10 WHERE id = 2", "DELETE FROM u WHERE id > 1000", "INSERT INTO t SELECT id + 100, a, b, c,"
    " d, e, f FROM t", "COMMIT",
    "DELETE FROM t WHERE id = 3",
)  # fmt: skip


@pytest.fixture(params=["mariadb_server", "new_mariadb_server"])
def mariadb(request: pytest.FixtureRequest) -> Iterator[Source]:
    """Both MariaDB servers of the tests."""
    server: Server = request.getfixturevalue(request.param)
    found = Source(server, "cut_rows")
    yield found
    found.close()


def of_file(source: Source, log: bytes, folder: Path, start: Position) -> Staged:
    """A log file extracted from the same place to its end."""
    folder.mkdir()
    (folder / start.file).write_bytes(log)
    stop = Position(start.basename, start.lognum, len(log))
    return source.staged(folder / "staged", start, stop, FileTransport(str(folder)))


@pytest.mark.parametrize("compress", [False, True])
def test_rows_of_a_real_log_in_fragments(mariadb: Source, tmp_path: Path, compress: bool) -> None:
    source = mariadb
    source.run("FLUSH BINARY LOGS", f"SET GLOBAL log_bin_compress = {int(compress)}")
    start = source.mark()
    source.run(*_WORK)
    source.run("SET GLOBAL log_bin_compress = 0")
    stop = source.mark()
    plain = (Path(source.server.log_dir) / start.file).read_bytes()[: stop.logpos]
    first = source.staged(tmp_path / "server", start, stop)
    for most in (100, 993, 20_000):
        cut = fragmented(plain, of_bytes(most))
        folder = tmp_path / f"{most}"
        found = of_file(source, cut, folder, start)
        for name in ("t", "u"):
            table = f"{source.schema}.{name}"
            # All but the seqno, which is a place in the log: operation, row offset, commit time, absent, columns.
            assert [[r[0], *r[2:]] for r in found.records(table)] == [[r[0], *r[2:]] for r in first.records(table)]
        fragments = sum(event[4] == 172 for event in events(cut))
        kinds = found.manifest.balance.event_types
        assert kinds["PARTIAL_ROW_DATA"] == fragments > 8
        assert not any("COMPRESSED" in kind and "ROWS" in kind for kind in kinds)
        assert found.manifest.balance.bytes == len(cut) - start.logpos
