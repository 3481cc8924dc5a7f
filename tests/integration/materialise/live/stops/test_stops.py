"""Tables of real servers that stop before they exchange their names."""

from __future__ import annotations

from typing import Literal

import pytest

from loader.errors import UsageError
from loader.materialise.rules import TableRule
from loader.model.table import TableName
from loader.pipeline import pause, quarantines_of, resume, source_lag
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration

INSERT_WITHOUT_DEFAULT = ("SET SESSION binlog_row_image = MINIMAL", "INSERT INTO {0} (id) VALUES (3)")
"""The log does not have the value of `name`, so the table stops there."""
SWAP = "RENAME TABLE a TO x, b TO a, x TO b"


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    for number, name in enumerate("abc"):
        live.run(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, name VARCHAR(20) DEFAULT 'new')",
            f"INSERT INTO {name} VALUES (1,'one'),({number + 10},'{name}')",
        )
    live.load()
    return live


def stop(source: LiveSource, *tables: str) -> None:
    for table in tables:
        source.run(*(statement.format(table) for statement in INSERT_WITHOUT_DEFAULT))


def cure(source: LiveSource) -> None:
    """Do what the errors of the quarantined tables say."""
    for table, quarantine in quarantines_of(source.settings).all().items():
        assert TableName.parse(str(table)).load_again in quarantine.error["hint"]
        source.load_again(table.table)


def test_both_tables_of_a_swap_stopped_before_it(source: LiveSource) -> None:
    stop(source, "a", "b")
    source.run(SWAP, "INSERT INTO a VALUES (4,'four')", "DELETE FROM b WHERE id = 1")
    found = source.statuses(source.delta())
    assert found == {"a": "quarantined", "b": "quarantined", "c": "unchanged"}
    cure(source)
    source.run("INSERT INTO b VALUES (5,'five')")
    assert source.delta().exit_code == 0
    assert source.differences() == []


@pytest.mark.sweep
def test_three_tables_that_change_places_stopped_before_it(source: LiveSource) -> None:
    stop(source, "a", "b", "c")
    source.run("RENAME TABLE a TO x, b TO a, c TO b, x TO c", "INSERT INTO a VALUES (4,'four')")
    assert source.statuses(source.delta()) == dict.fromkeys("abc", "quarantined")
    cure(source)
    assert source.merge().exit_code == 0
    assert source.differences() == []


def test_one_table_of_a_swap_stopped_before_it(source: LiveSource) -> None:
    stop(source, "a")
    source.run(SWAP, "INSERT INTO a VALUES (4,'four')")
    found = source.statuses(source.delta())
    assert found == {"a": "applied", "b": "quarantined", "c": "unchanged"}
    cure(source)
    assert source.merge().exit_code == 0
    assert source.differences() == []


@pytest.mark.parametrize("after", [pytest.param("DROP TABLE a", marks=pytest.mark.sweep), "RENAME TABLE a TO d"])
def test_a_stopped_table_that_the_server_no_longer_has(source: LiveSource, after: str) -> None:
    """The statement is not staged yet: the load says to stage it, and that helps."""
    stop(source, "a")
    assert source.statuses(source.delta())["a"] == "quarantined"
    source.run(after)
    with pytest.raises(UsageError, match="no such captured table") as refused:
        source.load_again("a")
    assert "dropped or renamed on the server: loader run" in refused.value.hint
    source.delta()
    cure(source)
    assert source.merge().exit_code == 0
    assert quarantines_of(source.settings).all() == {}
    assert source.differences() == []


def test_a_table_that_was_dropped_while_it_was_not_captured(source: LiveSource) -> None:
    """The log that was read does not say that it was dropped, so it can only be excluded."""
    captured, name = source.settings.tables, f"{source.database}.a"
    excluding = captured.model_copy(update={"exclude": (name,)})
    source.settings = source.settings.model_copy(update={"tables": excluding})
    source.run("DROP TABLE a", "INSERT INTO b VALUES (90, 'x')")
    assert source.delta().exit_code == 0
    source.settings = source.settings.model_copy(update={"tables": captured})
    for key in (91, 92):
        source.run(f"INSERT INTO b VALUES ({key}, 'x')")
        (error,) = (one.error for one in source.delta().tables if one.error)
        assert error["what"] == "the table was not captured all the time"
        assert f"loader initial-load --table {name} --again" in error["hint"]
    with pytest.raises(UsageError, match="no such captured table") as refused:
        source.load_again("a")
    assert f"because the table was not captured then: add '{name}' to tables.exclude" in refused.value.hint
    source.settings = source.settings.model_copy(update={"tables": excluding})
    assert source.merge().exit_code == 0
    assert (quarantines_of(source.settings).all(), source.differences()) == ({}, [])


@pytest.mark.sweep
@pytest.mark.parametrize("column", ["PRIMARY KEY", "NOT NULL"])
def test_a_table_with_an_invalid_date_is_dropped_before_it_is_merged(source: LiveSource, column: str) -> None:
    """Nothing on the server can be corrected any more, and nothing is missing."""
    source.run(f"CREATE TABLE dates (at DATETIME {column}, n INT)", "INSERT INTO dates VALUES ('2026-01-01', 1)")
    assert source.statuses(source.delta())["dates"] == "applied"
    invalid = ("SET SESSION sql_mode = ''", "INSERT INTO dates VALUES ('0000-00-00', 2)")
    source.run(*invalid, "DROP TABLE dates")
    assert source.delta().exit_code == 0
    source.run("CREATE TABLE dates (id INT PRIMARY KEY)", "INSERT INTO dates VALUES (5)")
    assert source.delta().exit_code == 0
    source.run(
        "CREATE TABLE more (at DATETIME PRIMARY KEY)",
        *(one.replace("dates", "more").replace(", 2", "") for one in invalid),
    )
    source.run("DROP TABLE more", "CREATE TABLE more (id INT PRIMARY KEY)", "INSERT INTO more VALUES (6)")
    assert source.delta().exit_code == 0
    assert quarantines_of(source.settings).all() == {}
    assert source.differences() == []


def test_a_stopped_table_is_dropped_while_it_is_paused(source: LiveSource) -> None:
    stop(source, "a", "b")
    assert source.statuses(source.delta()) == {"a": "quarantined", "b": "quarantined", "c": "unchanged"}
    pause(source.settings, [f"{source.database}.{table}" for table in "ab"], "ada", "look at it")
    source.run("DROP TABLE a", "DROP TABLE b", "CREATE TABLE b (n INT PRIMARY KEY)", "INSERT INTO b VALUES (1)")
    source.delta()
    source.run("INSERT INTO c VALUES (5,'five')")
    assert source.statuses(source.delta()) == {"a": "paused", "b": "paused", "c": "applied"}
    resume(source.settings, [f"{source.database}.*"])
    assert source.merge().exit_code == 0
    assert quarantines_of(source.settings).all() == {}
    assert source.differences() == []


@pytest.mark.sweep
def test_a_stopped_table_is_dropped_while_it_is_not_due(source: LiveSource) -> None:
    stop(source, "a")
    assert source.statuses(source.delta())["a"] == "quarantined"
    rule = TableRule(tables=(f"{source.database}.a",), every="999999d")
    source.settings = source.settings.model_copy(update={"rules": (rule,)})
    source.run("DROP TABLE a")
    assert source.delta().exit_code == 0
    assert quarantines_of(source.settings).all() == {}


@pytest.mark.sweep
@pytest.mark.parametrize("mode", ["history", "soft_delete"])
def test_a_stopped_table_that_keeps_its_past_is_dropped(
    live: LiveSource, mode: Literal["history", "soft_delete"]
) -> None:
    """Its past cannot be completed: the error says so, and does not ask for a load of a table that is gone."""
    rule = TableRule(tables=(f"{live.database}.kept",), mode=mode)
    live.settings = live.settings.model_copy(update={"rules": (rule,)})
    live.run("CREATE TABLE kept (id INT PRIMARY KEY, name VARCHAR(20) DEFAULT 'new')", "INSERT INTO kept VALUES (1,'')")
    live.load()
    stop(live, "kept")
    assert live.statuses(live.delta()) == {"kept": "quarantined"}
    live.run("DROP TABLE kept")
    (dropped,) = live.delta().tables
    excluded = f"{TableName(live.database, 'kept').exclusion}, then: loader run; then, unless the table was loaded"
    assert dropped.error and str(dropped.error["hint"]).startswith(excluded)
    tables = live.settings.tables.model_copy(update={"exclude": (f"{live.database}.kept",)})
    live.settings = live.settings.model_copy(update={"tables": tables})
    assert (live.merge().exit_code, live.merge().exit_code) == (0, 0)  # the log is as before
    assert (quarantines_of(live.settings).all(), source_lag(live.settings).tables_behind) == ({}, ())
    live.run("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    result = live.delta()
    assert (live.statuses(result), result.exit_code) == ({"other": "applied"}, 0)
