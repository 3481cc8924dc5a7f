"""Compressed transactions (MySQL) and compressed events (MariaDB) stage the same records as uncompressed ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.binlog.source import Source, table_rows

_WORK = (
    "INSERT INTO t VALUES (1, REPEAT('x', 1000), NULL), (2, 'short', 'a\\nb'), (3, REPEAT('yz', 40000), '')",
    "BEGIN", "UPDATE t SET a = CONCAT(a, 'é') WHERE id < 3", "UPDATE t SET id = id + 10 WHERE id = 2",
    "INSERT INTO t SELECT id + 100, a, b FROM t", "INSERT INTO u SELECT id, 1 FROM t", "DELETE FROM t WHERE id = 3",
    "COMMIT",
    "INSERT INTO u VALUES (1000, 1), (1001, 1)", "DELETE FROM u WHERE n = 1 AND id > 1000",
)  # fmt: skip


@pytest.fixture
def compressed(source: Source) -> Iterator[Source]:
    on = {
        "mysql": ("SET SESSION binlog_transaction_compression = ON",),
        "mariadb": ("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10"),
    }
    off = {
        "mysql": ("SET SESSION binlog_transaction_compression = OFF",),
        "mariadb": ("SET GLOBAL log_bin_compress = OFF", "SET GLOBAL log_bin_compress_min_len = 256"),
    }
    source.run(*on[source.kind])
    yield source
    source.run(*off[source.kind])


def work(source: Source) -> None:
    source.run("DROP TABLE IF EXISTS t, u", "CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT, b VARCHAR(20))",
               "CREATE TABLE u (id INT PRIMARY KEY, n INT)")  # fmt: skip
    source.run(*_WORK)


@pytest.mark.parametrize("transport", ["files", "network"])
def test_the_rows_are_those_of_the_plain_log(compressed: Source, transport: str, tmp_path: Path) -> None:
    source = compressed
    start = source.mark()
    work(source)
    packed = source.staged(tmp_path / "packed", start, transport=getattr(source, transport))
    kinds = packed.manifest.balance.event_types
    assert any("COMPRESSED" in kind or "PAYLOAD" in kind for kind in kinds), kinds
    source.run("SET SESSION binlog_transaction_compression = OFF") if source.kind == "mysql" else source.run(
        "SET GLOBAL log_bin_compress = OFF"
    )
    start = source.mark()
    work(source)
    plain = source.staged(tmp_path / "plain", start)
    for name in ("t", "u"):
        table = f"{source.schema}.{name}"
        # Offsets in the log differ; the order of records, and everything else, does not.
        assert [[r[0], *r[4:]] for r in packed.records(table)] == [[r[0], *r[4:]] for r in plain.records(table)]
        offsets = [(int(r[1]), int(r[2])) for r in packed.records(table)]
        assert offsets == sorted(set(offsets))
        last: dict[str, tuple[str | None, ...]] = {}
        for record in packed.records(table):
            last.pop(str(record[5]), None) if record[0] == "D" else last.update({str(record[5]): tuple(record[5:])})
        assert sorted(last.values()) == sorted(table_rows(source, packed.schema(table)))


def test_a_second_extraction_gives_the_same_bytes(compressed: Source, tmp_path: Path) -> None:
    start = compressed.mark()
    work(compressed)
    stop = compressed.mark()
    first = compressed.staged(tmp_path / "1", start, stop)
    again = compressed.staged(tmp_path / "2", start, stop, compressed.network)
    assert first.files == again.files
    assert first.manifest == again.manifest


def test_a_transaction_much_larger_than_a_piece(compressed: Source, tmp_path: Path) -> None:
    source = compressed
    source.run("DROP TABLE IF EXISTS big", "CREATE TABLE big (id INT PRIMARY KEY, v LONGTEXT)")
    source.run("INSERT INTO big VALUES (0, REPEAT('0123456789', 30000))")
    start = source.mark()
    source.run("BEGIN", *(f"INSERT INTO big SELECT id + {1 << n}, v FROM big" for n in range(5)), "COMMIT")
    lines = source.staged(tmp_path, start).records(f"{source.schema}.big")
    assert [line[5] for line in lines] == [str(n) for n in range(1, 32)]
    assert {line[6] for line in lines} == {"0123456789" * 30000}
