"""The sums of a table as of a snapshot, while others alter the tables of real servers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from infra.servers import Server
from infra.servers.process import wait_until
from loader.errors import RetryableError, UnsupportedError
from loader.model.table import TableName
from loader.source.server_facts import query
from loader.transport.server.connection import connected
from loader.verify.expressions import canonical_rows, comparison_of
from loader.verify.server_snapshot import server_snapshot
from tests.integration.initial_load.source_server import SourceServer
from tests.support.replicas import address_of, run

pytestmark = pytest.mark.integration


def row_hash(*values: str | bytes | None) -> int:
    """What the server must compute for a row of these texts and bytes."""
    found = (value.encode() if isinstance(value, str) else value for value in values)
    digests = ("-" if value is None else hashlib.sha256(value).hexdigest() for value in found)
    return int(hashlib.sha256("".join(digests).encode()).hexdigest()[:15], 16)


def test_sums_are_those_of_the_snapshot(source: SourceServer) -> None:
    source.run("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9))", "INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    with server_snapshot(source.address, [source.name("t")]) as snapshot:
        source.run("INSERT INTO t VALUES (3, 'later')", "DELETE FROM t WHERE a = 1")
        assert snapshot.position < source.log_end()
        assert snapshot.sums(source.name("t")).sums == {0: (2, row_hash("1", "x") + row_hash("2", None))}


def test_long_values_are_no_nulls(source: SourceServer) -> None:
    """On MariaDB, some functions return NULL if their result is longer than max_allowed_packet."""
    size = 9_000_000
    source.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b LONGBLOB, c LONGTEXT CHARACTER SET latin1)",
        f"INSERT INTO t VALUES (1, REPEAT(X'FF', {size}), REPEAT(_latin1 X'FF', {size}))",
    )
    with server_snapshot(source.address, [source.name("t")]) as snapshot:
        sums = snapshot.sums(source.name("t"))
        assert sums.sums == {0: (1, row_hash("1", b"\xff" * size, "\u00ff" * size))}
        ((row, count),) = snapshot.rows(sums, {0}).items()
        assert (row, count) == (("1", "FF" * size, "\u00ff" * size), 1)


def test_numbers_have_all_digits(source: SourceServer) -> None:
    """Servers round the texts of some of them. What they mean is in the log, as the bits of each number."""
    start = source.log_end()
    source.run(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, d DOUBLE, e DOUBLE(20,4), f FLOAT, g FLOAT(20,4))",
        "INSERT INTO t (d, e, f, g) VALUES (-0.0, -0.00001, -0.0, -0.00001), (-2.3518726205005056e-202, 0.1, 1e-45, 0.1)",
        *["INSERT INTO t (d, e, f, g) SELECT (RAND() - 0.5) * POW(10, FLOOR(RAND() * 600) - 300),"
          " (RAND() - 0.5) * POW(10, FLOOR(RAND() * 15)), RAND() * POW(10, FLOOR(RAND() * 60) - 30), RAND() * 1e9"
          " FROM t"] * 9,
    )  # fmt: skip
    staged = source.logged_lines(start, source.log_end())[source.name("t")].decode().splitlines()
    logged = {int(key): row for key, *row in (line.split(",")[5:] for line in staged)}
    with server_snapshot(source.address, [source.name("t")]) as snapshot:
        sums = snapshot.sums(source.name("t"))
        numbers = sums.table_schema.columns[1:]
        rows = {int(row[0] or 0): row[1:] for row in snapshot.rows(sums, {0})}
    assert len(rows) == 1024
    assert rows == dict(zip(logged, canonical_rows(map(comparison_of, numbers), logged.values()), strict=True))


ALTERED: dict[str, Sequence[str]] = {
    "columns that exchange their names": ["ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"],
    "a column with a default": ["ALTER TABLE t ADD COLUMN c INT DEFAULT 7"],
    "tables that exchange their names": ["RENAME TABLE t TO gone, same TO t"],
    "a table that is made again": ["DROP TABLE t", "CREATE TABLE t LIKE same"],
    "a table without rows": ["TRUNCATE TABLE t"],
    "a table that is dropped": ["DROP TABLE t"],
}


@pytest.mark.parametrize("statements", ALTERED.values(), ids=ALTERED)
def test_a_table_that_was_altered_since_is_refused(source: SourceServer, statements: Sequence[str]) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO t VALUES (1, 2, 3)")
    if "same TO t" in statements[0]:  # tables of the same second could not be told apart
        ((created,),) = source.run("SELECT UNIX_TIMESTAMP()")
        assert wait_until(lambda: source.run("SELECT UNIX_TIMESTAMP()")[0][0] > created, 5)
    source.run("CREATE TABLE same LIKE t", "CREATE TABLE other (id INT PRIMARY KEY)")
    with server_snapshot(source.address, [source.name("t"), source.name("other")]) as snapshot:
        source.run(*statements)
        with pytest.raises(RetryableError, match="cannot be read as of the snapshot"):
            snapshot.sums(source.name("t"))
        assert snapshot.sums(source.name("other")).sums == {}


def test_rows_of_a_table_that_was_altered_are_not_read_again(source: SourceServer) -> None:
    source.run("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 2)")
    with server_snapshot(source.address, [source.name("t")]) as snapshot:
        sums = snapshot.sums(source.name("t"))
        assert snapshot.rows(sums, {0}) == {("1", "2"): 1}
        source.run("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
        with pytest.raises(RetryableError, match="cannot be read as of the snapshot"):
            snapshot.rows(sums, {0})


def test_a_table_that_was_summed_can_be_altered_at_once(source: SourceServer) -> None:
    """An ALTER TABLE that waits makes all other statements on the table wait."""
    source.run("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with server_snapshot(source.address, [source.name("t")]) as snapshot:
        snapshot.sums(source.name("t"))
        source.run("SET SESSION lock_wait_timeout = 1", "ALTER TABLE t ADD COLUMN b INT")


def test_other_engines_are_refused(source: SourceServer) -> None:
    source.run("CREATE TABLE t (a INT PRIMARY KEY) ENGINE = MyISAM")
    with (
        server_snapshot(source.address, [source.name("t")]) as snapshot,
        pytest.raises(UnsupportedError, match="engine MyISAM"),
    ):
        snapshot.sums(source.name("t"))


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_idle_connections_are_kept(kind: str, fresh_server: Callable[..., Server]) -> None:
    """Both connections are idle while the log is applied."""
    idle = {"wait_timeout": "1"} | ({"idle_transaction_timeout": "1"} if kind == "mariadb" else {})
    server = fresh_server(kind, idle)
    run(server, "CREATE DATABASE shop", "CREATE TABLE shop.t (a INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)")
    table = TableName("shop", "t")
    with server_snapshot(address_of(server), [table]) as snapshot, connected(address_of(server)) as idle_one:
        ((number,),) = query(idle_one, "SELECT CONNECTION_ID()")
        query(idle_one, "SET SESSION wait_timeout = 1")
        alive = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {number}"
        assert wait_until(lambda: run(server, alive) == [(0,)], 30)
        assert snapshot.sums(table).sums == {0: (1, row_hash("1"))}


def test_a_sum_may_take_longer_than_other_statements(source: SourceServer) -> None:
    """It sends nothing until it is complete."""
    source.run("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    impatient = source.address.model_copy(update={"read_timeout_seconds": 1})
    waiting = (
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table%' AND TIME >= 3"
        f" AND DB IS NULL AND INFO LIKE '%{source.schema}%'"
    )
    with server_snapshot(impatient, [source.name("t")]) as snapshot, ThreadPoolExecutor(1) as pool:
        with source.connected() as other:
            query(other, f"LOCK TABLES `{source.schema}`.t WRITE")
            sums = pool.submit(snapshot.sums, source.name("t"))
            assert wait_until(lambda: source.run(waiting) == [(1,)] or sums.done(), 30)
        assert sums.result().sums == {0: (1, row_hash("1"))}
