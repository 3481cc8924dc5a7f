"""Tables that are altered while they are loaded: the chunks of a load never come from two definitions of a table."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from infra.servers.process import wait_until
from loader.errors import RetryableError
from loader.initial_load import load_planner, whole_table
from loader.initial_load.chunk_task import load_chunk
from loader.initial_load.definition_check import definition_locked
from loader.initial_load.documents import LoadPlan
from loader.initial_load.load_planner import can_resume, plan_load
from loader.initial_load.loads import Loads, plan_key
from loader.initial_load.server.consistent_snapshot import open_snapshot
from loader.initial_load.whole_table import load_whole_table
from loader.model.position import Position
from loader.source.schemas import read_key
from loader.source.server_facts import query
from loader.spark.settings import SparkSettings
from loader.spark.submit import command, environment, run
from loader.store.registry import open_store
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.initial_load.test_job import JOB, files, kill_between_chunks, manifest_of

pytestmark = pytest.mark.integration

ENUM = "ENUM('x', 'y', 'z')"
ALTERED: dict[str, tuple[str, str]] = {
    "collation": ("k VARCHAR(9) COLLATE utf8mb4_general_ci", "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
    "character set": ("k VARCHAR(9) COLLATE latin1_swedish_ci", "MODIFY k VARCHAR(9) COLLATE latin1_bin NOT NULL"),
    "labels": (f"e {ENUM} DEFAULT 'y', k VARCHAR(9)", "MODIFY e ENUM('z', 'y', 'x')"),
    "more labels": (f"e {ENUM} DEFAULT 'y', k VARCHAR(9)", "MODIFY e ENUM('x', 'y', 'z', '\N{GRINNING FACE}')"),
    "swapped names": ("k VARCHAR(9)", "RENAME COLUMN a TO b, RENAME COLUMN b TO a"),
    "a name taken over": ("k VARCHAR(9)", "RENAME COLUMN a TO c, ADD a INT DEFAULT 7"),
    "order of the key": ("k VARCHAR(9)", "DROP KEY u, ADD UNIQUE u (a, k)"),
    "name of the index": ("k VARCHAR(9)", "RENAME KEY u TO v"),
    "direction of the key": ("k VARCHAR(9)", "DROP KEY u, ADD UNIQUE u (k DESC, a)"),
    "number of digits": ("k VARCHAR(9), d DECIMAL(9,2) DEFAULT 1", "MODIFY d DECIMAL(12,2)"),
    "expression": ("k VARCHAR(9), g INT AS (a + 1) STORED", "DROP g, ADD g INT AS (a + 2) STORED"),
}
NEUTRAL = {
    "partitions": "ADD PARTITION (PARTITION p9 VALUES LESS THAN (9000))",
    "other partitions": "REORGANIZE PARTITION p0 INTO (PARTITION pa VALUES LESS THAN (2), PARTITION pb VALUES LESS THAN (50))",
    "next number": "AUTO_INCREMENT = 800",
    "a rebuild": "FORCE",
}


def begun(source: SourceServer, root: Path, columns: str) -> LoadPlan:
    source.run(
        f"CREATE TABLE t ({columns}, a INT NOT NULL, b INT NOT NULL)",
        "ALTER TABLE t MODIFY k VARCHAR(9) NOT NULL, ADD UNIQUE u (k, a)"
        if "COLLATE" not in columns
        else f"ALTER TABLE t MODIFY {columns} NOT NULL, ADD UNIQUE u (k, a)",
        "INSERT INTO t (k, a, b) VALUES ('A', 1, 2), ('b', 1, 3), ('C', 1, 4), ('d', 1, 5), ('E', 1, 6), ('f', 1, 7)",
    )
    return planned(source, root, 2)


def planned(source: SourceServer, root: Path, rows: int) -> LoadPlan:
    spec = spec_of(source, root, chunk_rows=rows)
    loads = Loads(open_store(spec.staging_root), spec.source, spec.generation)
    with source.connected() as connection:
        key = read_key(connection, source.name("t"))
        assert key is not None
        return loads.begin(plan_load(connection, spec, source.name("t"), key))


@pytest.mark.parametrize("name", ALTERED)
def test_no_chunk_is_read_from_another_definition(source: SourceServer, tmp_path: Path, name: str) -> None:
    columns, change = ALTERED[name]
    plan = begun(source, tmp_path, columns)
    load_chunk(source.address, f"file://{tmp_path}", plan_key(plan), "one", 0)
    with source.connected() as connection:
        assert can_resume(connection, plan)
        source.run(f"ALTER TABLE t {change}")
        assert not can_resume(connection, plan)
    with pytest.raises(RetryableError, match="the table was altered during its initial load"):
        load_chunk(source.address, f"file://{tmp_path}", plan_key(plan), "one", 1)
    assert len(list(tmp_path.rglob("chunks/*.json"))) == len(list(tmp_path.rglob("part-*"))) == 1


def test_a_swap_of_names_that_leaves_the_definition_as_it_was(source: SourceServer, tmp_path: Path) -> None:
    """The load cannot see it. The statement is in the log, and the merge refuses it: materialise.events.check_load."""
    source.run(
        "CREATE TABLE t (k VARCHAR(9) NOT NULL PRIMARY KEY, a INT NOT NULL, b INT NOT NULL)",
        "INSERT INTO t (k, a, b) VALUES ('A', 1, 2), ('b', 1, 3), ('C', 1, 4), ('d', 1, 5)",
    )
    plan = planned(source, tmp_path, 2)
    source.run("ALTER TABLE t CHANGE a b INT NOT NULL AFTER k, CHANGE b a INT NOT NULL AFTER k")
    assert source.run("SELECT MIN(a), MAX(b) FROM t") == [(2, 1)]
    with source.connected() as connection:
        assert can_resume(connection, plan)


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_changes_no_row_does_not_begin_a_load_anew(source: SourceServer, tmp_path: Path, name: str) -> None:
    source.run(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(50) DEFAULT 'AUTO_INCREMENT=7 ''\\\\',"
        " v VARBINARY(3) DEFAULT X'ff00') COMMENT 'the PARTITION BY AUTO_INCREMENT=9'"
        " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (50), PARTITION p1 VALUES LESS THAN (1000))",
        "INSERT INTO t (s) VALUES ('a'), ('b'), ('c')",
    )
    plan = planned(source, tmp_path, 2)
    source.run("INSERT INTO t (s) VALUES ('d')", f"ALTER TABLE t {NEUTRAL[name]}")
    with source.connected() as connection:
        assert can_resume(connection, plan)
    chunk = load_chunk(source.address, f"file://{tmp_path}", plan_key(plan), "one", 1)
    assert chunk.file is not None and chunk.file.rows == 2
    for statement in ("COMMENT 'AUTO_INCREMENT=10'", "ALTER s SET DEFAULT 'AUTO_INCREMENT=8 ''\\\\'"):
        source.run(f"ALTER TABLE t {statement}")
        with source.connected() as connection:
            assert not can_resume(connection, plan)
            plan = planned(source, tmp_path, 2)


def test_nobody_alters_a_table_while_a_chunk_of_it_is_read(source: SourceServer, tmp_path: Path) -> None:
    plan = begun(source, tmp_path, "k VARCHAR(9)")
    altering = threading.Thread(target=source.run, args=("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",))
    waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock%'"
    with source.connected() as connection:
        with definition_locked(connection, plan):
            altering.start()
            assert wait_until(lambda: source.run(waiting)[0][0] == 1, 30), "the statement did not wait"
            assert query(connection, f"SELECT MIN(a), MAX(a) FROM {source.schema}.t") == [(1, 1)]
        altering.join(30)
        assert not can_resume(connection, plan)
        with pytest.raises(RetryableError), definition_locked(connection, plan):
            pytest.fail("the block was entered")


@pytest.mark.parametrize("change", ["RENAME KEY u TO v", "DROP KEY u, ADD UNIQUE u (a, k)", "RENAME COLUMN k TO l"])
@pytest.mark.parametrize("moment", ["read_schemas", "log_end", "walk_bounds"])
def test_a_table_that_is_altered_while_it_is_planned(
    source: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, moment: str
) -> None:
    begun(source, tmp_path, "k VARCHAR(9)")
    source.run("INSERT INTO t (k, a, b) VALUES ('g', 1, 8)")
    left = [f"ALTER TABLE t {change}"]
    called: Any = getattr(load_planner, moment)

    def then(*given: Any) -> Any:
        while left:
            source.run(left.pop())
        return called(*given)

    monkeypatch.setattr(load_planner, moment, then)
    with pytest.raises(RetryableError, match="the table was altered during its initial load"):
        planned(source, tmp_path, 2)
    assert len(planned(source, tmp_path, 2).bounds) == 3
    assert len(list(tmp_path.rglob("plan.json"))) == 2


@pytest.mark.parametrize("statement", ["DROP TABLE t", "RENAME TABLE t TO u"])
@pytest.mark.parametrize("moment", ["definition_digest", "read_schemas", "log_end", "walk_bounds"])
def test_a_table_that_is_dropped_while_it_is_planned(
    source: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, moment: str
) -> None:
    source.run("CREATE TABLE t (k INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    left = [statement]
    called: Any = getattr(load_planner, moment)

    def then(*given: Any) -> Any:
        while left:
            source.run(left.pop())
        return called(*given)

    monkeypatch.setattr(load_planner, moment, then)
    with pytest.raises(
        RetryableError, match=r"was altered, dropped or locked while it was read|was dropped or renamed"
    ):
        planned(source, tmp_path, 2)


def test_a_table_that_is_dropped_between_two_chunks(source: SourceServer, tmp_path: Path) -> None:
    plan = begun(source, tmp_path, "k VARCHAR(9)")
    source.run("DROP TABLE t")
    with pytest.raises(RetryableError, match="a table was altered, dropped or locked while it was read"):
        load_chunk(source.address, f"file://{tmp_path}", plan_key(plan), "one", 1)


def test_a_key_that_was_read_before_the_table_was_altered(source: SourceServer, tmp_path: Path) -> None:
    spec = spec_of(source, tmp_path)
    begun(source, tmp_path, "k VARCHAR(9)")
    with source.connected() as connection:
        key = read_key(connection, source.name("t"))
        assert key is not None
        source.run("ALTER TABLE t MODIFY k VARCHAR(9), DROP KEY u, ADD UNIQUE u (a, b)")
        with pytest.raises(RetryableError, match="the table was altered during its initial load"):
            plan_load(connection, spec, source.name("t"), key)


@pytest.mark.parametrize("change", ["RENAME COLUMN a TO b, RENAME COLUMN b TO a", "ADD c INT DEFAULT 7"])
def test_a_definition_that_changes_between_a_snapshot_and_its_first_read(
    source: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    source.run("CREATE TABLE t (a INT, b INT)", "INSERT INTO t VALUES (1, 2)")
    left = [f"ALTER TABLE t {change}"]

    def opened(connection: Connection[Any]) -> Position:
        position = open_snapshot(connection)
        while left:
            source.run(left.pop())
        return position

    monkeypatch.setattr(whole_table, "open_snapshot", opened)
    spec = spec_of(source, tmp_path)
    with pytest.raises(RetryableError, match=r"a table was altered, dropped or locked|the table was altered"):
        load_whole_table(spec, source.name("t"), "one")
    loads = Loads(open_store(spec.staging_root), "shop", "0001")
    file = loads.chunks(loads.plan(load_whole_table(spec, source.name("t"), "two")))[0].file
    assert file is not None and file.rows == 1


def test_an_unfinished_load_of_an_older_version_is_planned_again(source: SourceServer, tmp_path: Path) -> None:
    plan = begun(source, tmp_path, "k VARCHAR(9)")
    old = plan.model_copy(update={"digest": "", "position": plan.position})
    (file,) = tmp_path.rglob("plan.json")
    file.write_bytes(old.canonical())
    with source.connected() as connection:
        assert not can_resume(connection, LoadPlan.read(file.read_bytes(), str(file)))
    with pytest.raises(RetryableError, match="for another definition") as caught:
        planned(source, tmp_path, 2)
    source.run(caught.value.hint.split(" on ")[0])
    assert planned(source, tmp_path, 2).digest == plan.digest


def rows_of(root: Path, key: str) -> Sequence[bytes]:
    """The rows of a manifest, from their first column on, in order."""
    found = [line for file in manifest_of(root, key).files for line in (root / file.key).read_bytes().splitlines()]
    return sorted(line.split(b",", 5)[5] for line in found)


def fill(source: SourceServer) -> None:
    """Keys in both cases, in another order for each collation."""
    source.run(
        "CREATE TABLE orders (k VARCHAR(9) COLLATE utf8mb4_general_ci NOT NULL, n INT NOT NULL, UNIQUE u (k, n))",
        source.deep_recursion,
        "INSERT INTO orders WITH RECURSIVE i AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM i WHERE i < 3000)"
        " SELECT CONCAT(IF(i % 2, 'k', 'K'), i DIV 2), i FROM i",
    )


ALL = sorted(f'"{"k" if i % 2 else "K"}{i // 2}",{i}'.encode() for i in range(1, 3001))


@pytest.mark.sweep
@pytest.mark.parametrize("change", ["CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "RENAME KEY u TO renamed"])
def test_a_load_that_was_killed_begins_anew(
    mysql: SourceServer, settings: SparkSettings, tmp_path: Path, change: str
) -> None:
    fill(mysql)
    spec = spec_of(mysql, tmp_path, chunk_rows=200)
    kill_between_chunks(spec, settings.model_copy(update={"master": "local[1]"}), tmp_path, 2)
    mysql.run(f"ALTER TABLE orders {change}")
    result = run(JOB, spec, settings)
    (table,) = result["tables"]
    assert (table["status"], table["rows"]) == ("staged", 3000)
    assert rows_of(tmp_path, result["manifests"][0]) == ALL


@pytest.mark.parametrize("kind", ["mysql", pytest.param("mariadb", marks=pytest.mark.sweep)])
def test_a_load_whose_table_is_altered_between_chunks_begins_anew(
    request: pytest.FixtureRequest, settings: SparkSettings, tmp_path: Path, kind: str
) -> None:
    source: SourceServer = request.getfixturevalue(kind)
    fill(source)
    spec = spec_of(source, tmp_path, chunk_rows=200)
    slow = settings.model_copy(update={"master": "local[1]"})
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    argv = command(JOB, ["--spec", str(tmp_path / "spec.json"), "--result", str(tmp_path / "result.json")], slow)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(argv, env={**os.environ, **environment(slow)}, stdout=log, stderr=log)
    assert wait_until(lambda: len(files(tmp_path, "chunks/*.json")) > 1, 60)
    source.run("ALTER TABLE orders CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    assert process.wait(120) == 0, (tmp_path / "log").read_text()[-3000:]
    (key,) = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("manifest.json")]
    assert rows_of(tmp_path, key) == ALL
    assert len(list(tmp_path.rglob("plan.json"))) == 2
    assert manifest_of(tmp_path, key).exact_at == str(source.log_end())
