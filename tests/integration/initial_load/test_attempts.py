"""Attempts at one load that race: the first plan, chunk and manifest stand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loader.errors import GapError, LoaderError
from loader.initial_load.chunk_task import load_chunk
from loader.initial_load.documents import LoadPlan
from loader.initial_load.load_planner import can_resume, plan_load
from loader.initial_load.load_states import LoadState, unfinished_loads
from loader.initial_load.loads import Loads, manifest_key, plan_key
from loader.initial_load.run import _manifest as manifest_of
from loader.initial_load.whole_table import load_whole_table
from loader.model.position import Position
from loader.source.continuity import AnotherServer
from loader.source.schemas import read_key
from loader.staging.layout import loaded_key
from loader.staging.notes.finished_work import Loaded
from loader.store.registry import open_store
from tests.conftest import StartServer
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.transport.proxy import breaking

pytestmark = pytest.mark.integration


def begun(source: SourceServer, root: Path) -> tuple[Loads, LoadPlan]:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 1), (3, 1)")
    spec = spec_of(source, root, chunk_rows=2)
    loads = Loads(open_store(spec.staging_root), spec.source, spec.generation)
    with source.connected() as connection:
        key = read_key(connection, source.name("t"))
        assert key is not None
        return loads, loads.begin(plan_load(connection, spec, source.name("t"), key))


def test_a_chunk_read_twice_is_the_first(mysql: SourceServer, tmp_path: Path) -> None:
    loads, plan = begun(mysql, tmp_path)
    root = f"file://{tmp_path}"
    first = load_chunk(mysql.address, root, plan_key(plan), "one", 0)
    mysql.run("UPDATE t SET v = 2")
    second = load_chunk(mysql.address, root, plan_key(plan), "one", 0)
    assert second == first
    assert loads.chunks(plan) == {0: first}
    assert first.file is not None
    lines = (tmp_path / first.file.key).read_bytes().splitlines()
    assert [line.split(b",", 5)[5] for line in lines] == [b"1,1", b"2,1"]
    assert lines[0].startswith(f"I,{plan.seqno},0,{plan.taken_at},,".encode())


def test_the_status_shows_a_load_until_it_is_in_the_warehouse(mysql: SourceServer, tmp_path: Path) -> None:
    loads, plan = begun(mysql, tmp_path)
    store = open_store(f"file://{tmp_path}")
    table = str(plan.name)

    def states() -> list[LoadState]:
        with ThreadPoolExecutor(2) as pool:
            return list(unfinished_loads(store, plan.source, plan.generation, pool))

    assert states() == [LoadState(table=table, chunks=2, staged=0, finished=False)]
    chunk = load_chunk(mysql.address, store.root, plan_key(plan), "one", 0)
    (written,) = [info.modified for info in store.list(f"{plan.folder}/chunks/")]
    assert chunk.file is not None
    begun_load = LoadState(table=table, chunks=2, staged=1, finished=False, newest_chunk=written)
    assert states() == [begun_load.model_copy(update={"rows": 2, "bytes": chunk.file.bytes})]
    last = load_chunk(mysql.address, store.root, plan_key(plan), "one", 1)
    loads.publish(plan, manifest_of(mysql.address, plan, [chunk, last]))
    assert last.file is not None
    size = chunk.file.bytes + last.file.bytes
    assert states() == [LoadState(table=table, chunks=2, staged=2, finished=True, rows=3, bytes=size)]
    note = Loaded(source=plan.source, table=table, position=plan.position, warehouse="lake")
    store.create(loaded_key(manifest_key(plan)), note.canonical())
    assert states() == []


def test_the_plan_of_a_position_is_the_first(mysql: SourceServer, tmp_path: Path) -> None:
    loads, plan = begun(mysql, tmp_path)
    other = plan.model_copy(update={"bounds": ()})
    assert loads.begin(other).bounds == plan.bounds == (("2",),)
    found = loads.newest(plan.name, plan.seqno)
    assert found is not None
    assert found.canonical() == plan.canonical()
    assert loads.newest(plan.name, plan.seqno + 1) is None


def test_another_server_is_not_read(mysql: SourceServer, mariadb: SourceServer, tmp_path: Path) -> None:
    _, plan = begun(mysql, tmp_path)
    with pytest.raises(GapError):
        load_chunk(mariadb.address, f"file://{tmp_path}", plan_key(plan), "one", 0)
    assert not list(tmp_path.rglob("part-*"))


def test_a_table_without_a_key_is_read_on_one_server(
    mysql: SourceServer, fresh_server: StartServer, tmp_path: Path
) -> None:
    """The name of a host leads to several servers."""
    mysql.run("CREATE TABLE bag (id INT)", "INSERT INTO bag VALUES (1)")
    other = SourceServer(fresh_server("mysql"))
    other.run(f"CREATE DATABASE `{mysql.schema}`", f"CREATE TABLE `{mysql.schema}`.bag (id INT)")
    spec = spec_of(mysql, tmp_path)
    with breaking(mysql.server, [], other=other.server) as proxy:
        moved = spec.model_copy(update={"server": mysql.address.model_copy(update={"port": proxy.port})})
        with pytest.raises(AnotherServer):
            load_whole_table(moved, mysql.name("bag"), "one")
    assert not list(tmp_path.rglob("load"))


def test_a_chunk_that_fails_leaves_nothing(mysql: SourceServer, tmp_path: Path) -> None:
    loads, plan = begun(mysql, tmp_path)
    mysql.run("ALTER TABLE t MODIFY v VARCHAR(9)")
    with pytest.raises(LoaderError):
        load_chunk(mysql.address, f"file://{tmp_path}", plan_key(plan), "one", 0)
    mysql.run("DROP TABLE t")
    with pytest.raises(LoaderError):
        load_chunk(mysql.address, f"file://{tmp_path}", plan_key(plan), "one", 0)
    assert loads.chunks(plan) == {}
    assert not list(tmp_path.rglob("part-*"))


def test_the_position_comes_before_the_first_read(source: SourceServer, tmp_path: Path) -> None:
    before = source.log_end()
    _, plan = begun(source, tmp_path)
    assert before < Position.parse(plan.position) <= source.log_end()
    assert plan.taken_at[4] == "-"
    assert len(plan.taken_at) == len("2026-11-21 09:30:00.000000")


def test_an_unfinished_load_of_an_altered_table_is_given_up(source: SourceServer, tmp_path: Path) -> None:
    _, plan = begun(source, tmp_path)
    with source.connected() as connection:
        assert can_resume(connection, plan)
        source.run("INSERT INTO t VALUES (4, 4)")
        assert can_resume(connection, plan)
        source.run("ALTER TABLE t ADD COLUMN w INT")
        assert not can_resume(connection, plan)


def test_an_unfinished_load_whose_log_is_gone_is_given_up(fresh_server: StartServer, tmp_path: Path) -> None:
    source = SourceServer(fresh_server("mysql"))
    _, plan = begun(source, tmp_path)
    source.run("FLUSH BINARY LOGS", f"PURGE BINARY LOGS TO '{source.log_end().file}'")
    with source.connected() as connection:
        assert can_resume(connection, plan)
    source.run(f"PURGE BINARY LOGS TO '{source.log_end().file}'")
    with source.connected() as connection:
        assert not can_resume(connection, plan)
