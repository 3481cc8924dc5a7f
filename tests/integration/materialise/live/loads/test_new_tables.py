"""New tables of a source on real servers. The log creates some of them; the others must be loaded."""

from __future__ import annotations

from typing import Any

import pytest

from loader.initial_load.run import stage_tables
from loader.materialise.spec import MaterialiseResult
from loader.pipeline import UnloadedTable, find_unloaded, list_tables, quarantines_of, read_tables_job
from loader.spark.workers import Threads
from loader.staging.documents import TableFilter
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    """A source that loads new tables, with a loaded table `a`; tables `old_...` are not captured."""
    captured = TableFilter(include=(f"{live.database}.*",), exclude=(f"{live.database}.old_*",))
    live.settings = live.settings.model_copy(update={"tables": captured, "auto_load": True})
    live.run(
        "CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE old_x (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE old_bag (n INT)",
        "INSERT INTO old_x VALUES (1,'one'),(2,'two')",
        "INSERT INTO old_bag VALUES (1),(1),(NULL)",
    )
    live.load()
    live.run("INSERT INTO a VALUES (1,'eins')")
    live.delta()
    assert run(live)[1] == {}
    return live


def run(source: LiveSource, *statements: str) -> tuple[MaterialiseResult, dict[str, str]]:
    """Run statements and a delta that loads new tables. Return the result of the merges, and the action for each table."""
    source.run(*statements)
    listed = list_tables(source.settings)
    result = source.delta()
    found = find_unloaded(source.settings, listed)
    if names := [one.table.partition(".")[2] for one in found if one.action == "load"]:
        source.load(*names)
    return result, actions(found)


def actions(found: tuple[UnloadedTable, ...]) -> dict[str, str]:
    return {one.table.partition(".")[2]: one.action for one in found}


def missing(source: LiveSource) -> list[str]:
    return [name for name in source.differences() if not name.startswith("old_")]


def test_tables_that_the_log_creates_are_not_loaded(source: LiveSource) -> None:
    result, found = run(
        source,
        "CREATE TABLE b (id INT PRIMARY KEY)",
        "INSERT INTO b VALUES (1)",
        "CREATE TABLE c (id INT PRIMARY KEY) SELECT id FROM a",
        "CREATE TABLE bare LIKE a",
        "CREATE TABLE gone (id INT PRIMARY KEY)",
        "INSERT INTO gone VALUES (1)",
        "DROP TABLE gone",
    )
    assert (found, result.exit_code, missing(source)) == ({}, 0, [])
    statuses = {name: status for name, status in source.statuses(result).items() if name in {"b", "c"}}
    assert statuses == {"b": "applied", "c": "applied"}
    assert run(source, "INSERT INTO bare VALUES (1,'x')", "CREATE TABLE gone (id INT PRIMARY KEY)")[1] == {}
    assert missing(source) == []


def test_a_table_that_is_created_while_a_delta_runs_is_not_loaded(source: LiveSource) -> None:
    source.run("CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO b VALUES (1)")
    listed = list_tables(source.settings)
    assert listed is not None
    assert listed.tables == (f"{source.database}.b",)
    assert find_unloaded(source.settings, listed) == ()  # its log is not applied yet
    source.run("CREATE TABLE c (id INT PRIMARY KEY)", "INSERT INTO c VALUES (1)")
    source.delta()
    assert find_unloaded(source.settings, listed) == ()
    assert missing(source) == []


def test_a_table_that_the_configuration_adds(source: LiveSource) -> None:
    captured = source.settings.tables.model_copy(update={"exclude": ()})
    source.settings = source.settings.model_copy(update={"tables": captured, "auto_load": False})
    name = f"{source.database}.old_x"
    for _ in range(2):
        assert run(source, "INSERT INTO a VALUES (2,'zwei')", "DELETE FROM a WHERE id = 2")[1] == {
            "old_bag": "ask", "old_x": "ask",
        }  # fmt: skip
    (_, asked) = find_unloaded(source.settings, list_tables(source.settings))
    assert asked.note.startswith(f"{name} is captured and not loaded (about 0.0 MB)")
    assert asked.note.endswith(f"to load it: loader initial-load --table {name}")

    source.settings = source.settings.model_copy(update={"auto_load": True})
    assert run(source)[1] == {"old_bag": "load", "old_x": "load"}
    assert source.differences() == []
    assert run(source, "UPDATE old_x SET name = 'x' WHERE id = 2", "DELETE FROM old_bag LIMIT 1")[1] == {}
    assert source.differences() == []


@pytest.mark.parametrize("changed", [True, False])
def test_a_table_that_is_renamed_to_a_captured_name(source: LiveSource, changed: bool) -> None:
    """Its changes stop it in the run that loads it, and not afterwards."""
    more = ["INSERT INTO x VALUES (3,'three')", "DELETE FROM x WHERE id = 1"] if changed else []
    result, found = run(source, "RENAME TABLE old_x TO x", *more)
    assert (source.statuses(result)["x"], found) == ("quarantined", {"x": "load"})
    assert quarantines_of(source.settings).all() == {}
    assert missing(source) == []
    result, found = run(source, "INSERT INTO x VALUES (4,'four')", "UPDATE x SET name = 'zwei' WHERE id = 2")
    assert (result.exit_code, found, missing(source)) == (0, {}, [])


def test_an_empty_table_that_is_renamed_to_a_captured_name(source: LiveSource) -> None:
    result, found = run(source, "CREATE TABLE old_e (id INT PRIMARY KEY)", "RENAME TABLE old_e TO e")
    assert (source.statuses(result)["e"], found) == ("quarantined", {"e": "load"})
    result, found = run(source, "INSERT INTO e VALUES (1)")
    assert (result.exit_code, found, missing(source)) == (0, {}, [])


def test_large_tables_are_named_and_small_ones_share_the_limit(source: LiveSource) -> None:
    source.run(
        "CREATE TABLE old_big (id INT PRIMARY KEY, t LONGTEXT)",
        "INSERT INTO old_big VALUES (1, REPEAT('x', 300000)), (2, REPEAT('y', 300000))",
        "ANALYZE TABLE old_big",
    )
    source.delta()
    captured = source.settings.tables.model_copy(update={"exclude": ()})
    source.settings = source.settings.model_copy(update={"tables": captured, "auto_load_bytes": 20_000})
    first, second = run(source)[1], run(source)[1]
    assert first == {"old_bag": "load", "old_x": "later", "old_big": "ask"}
    assert second == {"old_x": "load", "old_big": "ask"}
    assert run(source)[1] == {"old_big": "ask"}
    assert source.differences() == ["old_big"]
    source.load("old_big")
    assert (run(source)[1], source.differences()) == ({}, [])


def test_a_table_that_cannot_be_loaded_is_refused_once(source: LiveSource) -> None:
    engine = "MyISAM" if source.server.programs.kind == "mysql" else "Aria"
    source.run(f"CREATE TABLE old_r (n INT) ENGINE={engine}", "INSERT INTO old_r VALUES (1)")
    source.run("RENAME TABLE old_r TO r", "INSERT INTO r VALUES (2)")
    for action in ("load", "refused"):
        listed = list_tables(source.settings)
        source.delta()
        (found,) = find_unloaded(source.settings, listed)
        assert (found.table, found.action) == (f"{source.database}.r", action)
        if action == "load":
            spec: Any = read_tables_job(source.settings, (found.table,)).spec
            assert stage_tables(Threads(2), spec).exit_code == 4
    assert found.error is not None
    assert found.error["what"] == f"a table of engine {engine} without a primary key is not supported"
    assert run(source, "DROP TABLE r")[1] == {}


def test_a_rebuild_that_changes_labels_keeps_types_that_the_log_does_not_have(live: LiveSource) -> None:
    if live.server.kind != "mariadb":
        pytest.skip("MySQL has no INET4")
    live.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INET4, e ENUM('Ã©','b')) CHARSET latin1",
        "INSERT INTO t VALUES (1,'1.2.3.4','b'),(2,NULL,'b')",
    )
    live.load()
    live.run(
        "CREATE TABLE _t_new LIKE t",
        "ALTER TABLE _t_new CONVERT TO CHARACTER SET utf8mb4, ADD COLUMN n INT",
        "INSERT INTO _t_new (id, a, e) SELECT id, a, e FROM t",
        "RENAME TABLE t TO _t_old, _t_new TO t",
        "DROP TABLE _t_old",
        "UPDATE t SET a = '4.3.2.1', n = 7 WHERE id = 2",
    )
    result = live.delta()
    assert result.exit_code == 0, result
    assert live.differences() == []
