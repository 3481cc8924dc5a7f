"""Tables without a key: a snapshot has exactly what the log made up to its position, while others write."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from loader.errors import RetryableError, UnsupportedError
from loader.initial_load import whole_table
from loader.initial_load.chunks import chunk_query
from loader.initial_load.loads import Loads
from loader.initial_load.result_set.reader import ResultReader, line_head, prepare_session
from loader.initial_load.server import consistent_snapshot
from loader.initial_load.server.consistent_snapshot import open_snapshot
from loader.initial_load.whole_table import load_whole_table
from loader.model.position import Position
from loader.source.schemas import read_schemas
from loader.store.local import LocalStore
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration


@contextmanager
def writers(source: SourceServer, pause: float) -> Iterator[threading.Event]:
    """Two that insert, update and delete rows of `t`, which has no key; set the event to end them."""
    source.run("CREATE TABLE t (a INT, b DOUBLE)")
    done, began = threading.Event(), threading.Barrier(3)

    def write(seed: int) -> None:
        dice = random.Random(seed)
        with source.connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"USE `{source.schema}`")
            began.wait()
            while not done.wait(dice.random() * pause):
                cursor.execute(f"INSERT INTO t VALUES ({dice.randrange(9)}, -0.0), ({dice.randrange(9)}, NULL)")
                cursor.execute(f"UPDATE t SET b = {dice.randrange(3)} WHERE a = {dice.randrange(9)} LIMIT 2")
                cursor.execute(f"DELETE FROM t WHERE a = {dice.randrange(9)} LIMIT 1")

    threads = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    began.wait()
    try:
        yield done
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_snapshot_is_what_the_log_made_up_to_its_position(source: SourceServer) -> None:
    start = source.log_end()
    found = []
    with writers(source, 0.05), source.connected() as connection:
        prepare_session(connection)
        with source.connected() as asking:
            schema = read_schemas(asking, [source.name("t")])[0]
        while len({position for position, _ in found}) < 15:
            position = open_snapshot(connection)
            lines: list[bytes] = []
            reader = ResultReader(connection, schema, b"")
            reader.read(
                f"SELECT a, b FROM `{source.schema}`.t", lambda block, to=lines: to.extend(bytes(block).split())
            )
            connection.rollback()
            found.append((position, Counter(lines)))
    for position, rows in found:
        logged = source.logged_lines(start, position).get(source.name("t"), b"").splitlines()
        net: Counter[bytes] = Counter()
        for line in logged:
            op, *_, a, b = line.split(b",")
            net[b",".join((a, b))] += 1 if op == b"I" else -1
        assert +net == rows
        assert min(net.values(), default=0) >= 0


def test_a_load_of_a_table_without_a_key(source: SourceServer, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (a INT, b VARCHAR(9))", "INSERT INTO t VALUES (1, 'x'), (1, 'x'), (NULL, NULL)")
    spec = spec_of(source, tmp_path)
    loads = Loads(LocalStore(f"file://{tmp_path}"), "shop", "0001")
    end = source.log_end()
    plan = loads.plan(load_whole_table(spec, source.name("t"), "one"))
    assert (plan.position, plan.key, plan.chunks) == (str(end), (), 1)
    assert loads.plan(load_whole_table(spec, source.name("t"), "two")) == plan
    file = loads.chunks(plan)[0].file
    assert file is not None
    head = line_head(plan.seqno, plan.taken_at)
    lines = (tmp_path / file.key).read_bytes().splitlines()
    assert Counter(lines) == {head + b'1,"x"': 2, head + b"\\N,\\N": 1}
    assert chunk_query(plan, "TRUE").split() == f"SELECT `a`, `b` FROM `{source.schema}`.`t` WHERE TRUE".split()
    source.run("CREATE TABLE other (a INT) ENGINE=MyISAM")
    with pytest.raises(UnsupportedError, match="engine MyISAM"):
        load_whole_table(spec, source.name("other"), "one")


def test_tables_whose_names_differ_by_case_and_accents(source: SourceServer, tmp_path: Path) -> None:
    """SHOW TABLE STATUS ... WHERE Name = 't' also finds T on MariaDB."""
    engines = {"t": "InnoDB", "T": "MyISAM", "e": "InnoDB", "é": "InnoDB"}
    for name, engine in engines.items():
        source.run(f"CREATE TABLE `{name}` (a INT) ENGINE={engine}", f"INSERT INTO `{name}` VALUES (1)")
    spec = spec_of(source, tmp_path)
    for name, engine in engines.items():
        if engine == "InnoDB":
            assert load_whole_table(spec, source.name(name), "one").endswith("plan.json")
        else:
            with pytest.raises(UnsupportedError, match="a table of engine MyISAM without"):
                load_whole_table(spec, source.name(name), "one")


def test_a_server_that_is_never_quiet(mysql: SourceServer, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = itertools.count()
    monkeypatch.setattr(consistent_snapshot, "_LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(consistent_snapshot, "log_end", lambda _: next(ends))
    monkeypatch.setattr(consistent_snapshot, "wait_until_visible", lambda *_: None)
    with (
        mysql.connected() as connection,
        pytest.raises(RetryableError, match="no consistent snapshot with a known log position"),
    ):
        open_snapshot(connection)


def test_a_table_that_is_altered_behind_its_snapshot_is_loaded_by_another_try(
    source: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both servers refuse to read it in that snapshot: error 1412."""
    source.run("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)")
    altered = iter(["ALTER TABLE t ADD b INT DEFAULT 2, ALGORITHM=COPY"])

    def opened(connection: Connection[Any]) -> Position:
        position = open_snapshot(connection)
        for statement in altered:
            source.run(statement)
        return position

    monkeypatch.setattr(whole_table, "open_snapshot", opened)
    with pytest.raises(RetryableError, match="altered, dropped or locked while it was read") as caught:
        load_whole_table(spec_of(source, tmp_path), source.name("t"), "one")
    assert caught.value.why.startswith("1412")
    loads = Loads(LocalStore(f"file://{tmp_path}"), "shop", "0001")
    file = loads.chunks(loads.plan(load_whole_table(spec_of(source, tmp_path), source.name("t"), "two")))[0].file
    assert file is not None and file.rows == 1
