"""MariaDB's binlog_alter_two_phase logs a statement when it begins and when it ends, with success or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from infra.servers.process import wait_until
from loader.transport.server.connection import connected
from tests.integration.binlog.source import Source, Staged

pytestmark = pytest.mark.integration

SECONDS = 30


@pytest.fixture
def mariadb(source: Source) -> Iterator[Source]:
    if source.kind == "mysql":
        pytest.skip("MariaDB only")
    source.run("DROP TABLE IF EXISTS t, k, m", "CREATE TABLE m (id INT PRIMARY KEY)")
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    source.run("INSERT INTO t VALUES (1, 1), (2, 1)", "SET SESSION binlog_alter_two_phase = ON")
    yield source
    source.run("SET SESSION binlog_alter_two_phase = OFF")


def barriers(staged: Staged) -> list[str]:
    return [barrier.statement for barrier in staged.manifest.barriers]


def fails(source: Source, statement: str) -> None:
    with pytest.raises(Exception, match=r"Duplicate entry|Truncated incorrect"):
        source.run(statement)


@pytest.mark.parametrize("compressed", ["OFF", "ON"])
def test_only_statements_that_took_effect_are_barriers(mariadb: Source, tmp_path: Path, compressed: str) -> None:
    done = [
        "ALTER TABLE t ADD b INT DEFAULT 5",
        "ALTER TABLE t MODIFY a VARCHAR(10), ALGORITHM=COPY",
        "SET STATEMENT lock_wait_timeout=7 FOR ALTER TABLE t ADD c INT",
        "ALTER TABLE t RENAME TO k, ADD d INT",
        "ALTER TABLE k RENAME TO t",
    ]
    mariadb.run(f"SET GLOBAL log_bin_compress = {compressed}", "SET GLOBAL log_bin_compress_min_len = 10")
    start = mariadb.mark()
    fails(mariadb, "ALTER TABLE t ADD UNIQUE (a)")
    mariadb.run(*done[:2])
    fails(mariadb, "CREATE UNIQUE INDEX u ON t (a)")
    mariadb.run(*done[2:])
    mariadb.run("INSERT INTO t (id, a) VALUES (7, 'text')")
    fails(mariadb, "SET STATEMENT sql_mode='STRICT_ALL_TABLES' FOR ALTER TABLE t MODIFY a INT, ALGORITHM=COPY")
    staged = mariadb.staged(tmp_path, start)
    mariadb.run("SET GLOBAL log_bin_compress = OFF", "SET GLOBAL log_bin_compress_min_len = 256")
    assert barriers(staged) == done
    queries = "QUERY_COMPRESSED" if compressed == "ON" else "QUERY"
    assert staged.manifest.balance.event_types[queries] >= 2 * len(done) + 4
    assert [column.name for column in staged.schema(f"{mariadb.schema}.t").columns] == ["id", "a", "b", "c", "d"]


@contextmanager
def waiting(source: Source, statement: str) -> Iterator[Thread]:
    """A statement that is in the log and does not end before the block, as somebody reads the table."""
    with connected(source.address) as reader, reader.cursor() as cursor:
        cursor.execute("START TRANSACTION")
        cursor.execute(f"SELECT * FROM {source.schema}.t")
        with connected(source.address) as other:
            before = source.mark()

            def alter() -> None:
                with other.cursor() as altering:
                    altering.execute(f"USE {source.schema}")
                    altering.execute("SET SESSION binlog_alter_two_phase = ON")
                    altering.execute(statement)

            thread = Thread(target=alter, daemon=True)
            thread.start()
            assert wait_until(lambda: source.mark() > before, SECONDS), "the statement did not begin"
            yield thread
            cursor.execute("ROLLBACK")
            thread.join(SECONDS)


def test_a_statement_that_begins_in_one_interval_and_ends_in_the_next(mariadb: Source, tmp_path: Path) -> None:
    statement = "ALTER TABLE t ADD b INT, ALGORITHM=COPY"
    start = mariadb.mark()
    with waiting(mariadb, statement):
        mariadb.run("INSERT INTO m VALUES (1)")
        middle = mariadb.mark()
    mariadb.run("INSERT INTO t VALUES (3, 3, 3)")
    first, second = mariadb.staged(tmp_path / "1", start, middle), mariadb.staged(tmp_path / "2", middle)
    assert (barriers(first), barriers(second)) == ([], [statement])
    assert [line[5:] for line in first.records(f"{mariadb.schema}.m")] == [["1"]]
    assert [line[5:] for line in second.records(f"{mariadb.schema}.t")] == [["3", "3", "3"]]
    assert second.manifest.barriers[0].tables == (f"{mariadb.schema}.t",)
