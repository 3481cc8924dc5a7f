"""Tables of real servers that are paused while rows, columns and names change, compared with the server from outside."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader.errors import UsageError
from loader.materialise.jobs.maintain_job import maintain
from loader.pipeline import maintain_job, pause, resume, source_lag, status
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.run(
        "CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE b LIKE a",
        "CREATE TABLE c (name VARCHAR(20), n INT)",
        "INSERT INTO a VALUES (1,'one'),(2,'two')",
        "INSERT INTO b VALUES (1,'eins')",
        "INSERT INTO c VALUES ('x',1),('x',1)",
    )
    live.load()
    live.run("INSERT INTO b VALUES (9,'neun')")
    live.delta()
    return live


def paused(source: LiveSource, *tables: str) -> None:
    pause(source.settings, [f"{source.database}.{table}" for table in tables], "ada", "look at it")


def resumed(source: LiveSource) -> None:
    resume(source.settings, [f"{source.database}.*"])


def test_rows_and_columns_change_meanwhile(source: LiveSource) -> None:
    source.run("INSERT INTO a VALUES (3,'three')", "DELETE FROM c LIMIT 1")
    source.delta()
    before = {name: source.warehouse_rows(name) for name in ("a", "c")}
    paused(source, "a", "c")
    source.run(
        "UPDATE a SET name = 'drei' WHERE id = 3",
        "ALTER TABLE a ADD COLUMN n INT DEFAULT 7, MODIFY name VARCHAR(40)",
        "INSERT INTO a VALUES (4,'four',4)",
        "INSERT INTO c VALUES ('y',NULL),('x',1)",
        "INSERT INTO b VALUES (2,'zwei')",
    )
    result = source.delta()
    assert (source.statuses(result), result.exit_code) == ({"a": "paused", "b": "applied", "c": "paused"}, 0)
    source.run("DELETE FROM a WHERE id = 1", "DELETE FROM c WHERE name = 'x' LIMIT 2", "DELETE FROM b")
    assert source.delta().exit_code == 0
    assert {name: source.warehouse_rows(name) for name in ("a", "c")} == before
    assert source.differences() == ["a", "c"]
    lag = source_lag(source.settings)
    assert [(one.table.partition(".")[2], one.state, one.short) for one in lag.postponed] == [
        ("a", "paused", True), ("c", "paused", True),
    ]  # fmt: skip
    assert (lag.released, lag.quarantined) == ((), ())
    resumed(source)
    assert source_lag(source.settings).released == (f"{source.database}.a", f"{source.database}.c")
    assert source.merge().exit_code == 0
    assert source.differences() == []
    assert [one.table for one in status(source.settings).tables] == [f"{source.database}.{name}" for name in "abc"]
    assert source_lag(source.settings).postponed == ()


@pytest.mark.sweep
def test_names_change_meanwhile(source: LiveSource) -> None:
    paused(source, "a")
    source.run(
        "INSERT INTO a VALUES (3,'three')",
        "RENAME TABLE a TO x, b TO a, x TO b",
        "INSERT INTO a VALUES (5,'five')",
        "INSERT INTO b VALUES (6,'six')",
        "INSERT INTO c VALUES ('z',0)",
    )
    assert source.statuses(source.delta()) == {"a": "paused", "b": "waiting", "c": "applied"}
    source.run("RENAME TABLE b TO moved", "INSERT INTO moved VALUES (7,'seven')", "UPDATE a SET name = 'fünf'")
    result = source.delta()
    assert (source.statuses(result), result.exit_code) == (
        {"a": "paused", "b": "waiting", "c": "unchanged", "moved": "waiting"}, 0,
    )  # fmt: skip
    resumed(source)
    assert source.merge().exit_code == 0
    assert source.differences() == []


@pytest.mark.parametrize("created", [True, False])
def test_it_is_dropped_meanwhile(source: LiveSource, created: bool) -> None:
    paused(source, "a")
    source.run("DROP TABLE a", *(["CREATE TABLE a (id BIGINT, k INT PRIMARY KEY)"] if created else []))
    source.run(*(["INSERT INTO a VALUES (1, 1)"] if created else []))
    assert source.statuses(source.delta())["a"] == "paused"
    resumed(source)
    assert source.merge().exit_code == 0
    assert source.differences() == []


def test_it_is_loaded_again_once_it_is_resumed(source: LiveSource) -> None:
    paused(source, "a")
    source.run("INSERT INTO a VALUES (3,'three')")
    source.delta()
    with pytest.raises(UsageError, match="paused tables cannot be loaded again"):
        source.load_again("a")
    resumed(source)
    source.load_again("a")
    source.run("INSERT INTO a VALUES (4,'four')")
    assert source.delta().exit_code == 0
    assert source.differences() == []


@pytest.mark.sweep
def test_maintenance_keeps_the_rows_of_an_online_schema_change(source: LiveSource) -> None:
    """No view has the table `_a_new`, which was created and renamed in one interval."""
    paused(source, "a")
    source.run(
        "CREATE TABLE _a_new (id INT PRIMARY KEY, name VARCHAR(20), w INT)",
        "INSERT INTO _a_new SELECT id, name, 7 FROM a",
        "RENAME TABLE a TO _a_old, _a_new TO a",
        "INSERT INTO a VALUES (4,'four',4)",
    )
    assert source.delta().exit_code == 0
    source.run("INSERT INTO b VALUES (10,'zehn')")
    source.delta()
    spec = cast("Any", maintain_job(source.settings).spec)
    done = maintain(source.spark, spec.model_copy(update={"keep_days": 0.0}))
    assert not any(one.error for one in done.tables)
    resumed(source)
    source.run("INSERT INTO b VALUES (11,'elf')")
    source.delta()
    assert source.differences() == []


def test_a_table_waits_for_one_that_is_excluded_meanwhile(source: LiveSource) -> None:
    paused(source, "a")
    source.run("INSERT INTO a VALUES (3,'three')", "RENAME TABLE a TO x", "INSERT INTO x VALUES (4,'four')")
    assert source.statuses(source.delta()) == {"a": "paused", "b": "unchanged", "c": "unchanged", "x": "waiting"}
    captured = source.settings.tables.model_copy(update={"exclude": (f"{source.database}.a",)})
    source.settings = source.settings.model_copy(update={"tables": captured})
    resumed(source)
    source.run("INSERT INTO b VALUES (5,'five')")
    result = source.delta()
    assert source.statuses(result) == {"b": "applied", "c": "unchanged", "x": "quarantined"}
    assert result.published
    (error,) = (one.error for one in result.tables if one.error)
    assert error["why"] == "it is no longer captured"
    assert error["hint"].startswith(f"loader initial-load --table {source.database}.x --again")
    source.load_again("x")
    source.run("INSERT INTO x VALUES (6,'six')")
    assert (source.delta().exit_code, source.differences()) == (0, [])
