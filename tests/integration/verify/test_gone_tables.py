"""Tables that the warehouse has and the server no longer has."""

from __future__ import annotations

import pytest

from loader import pipeline
from loader.materialise.rules import TableRule
from tests.integration.materialise.live_source import LiveSource
from tests.integration.verify.verified import by_table, verified

pytestmark = pytest.mark.integration

TABLES = ("stays", "unlogged", "marked", "logged", "moved", "bare", "kept")


def test_rows_of_a_table_that_was_dropped_without_a_log_entry(live: LiveSource) -> None:
    rules = (TableRule(tables=("*.marked",), mode="soft_delete"), TableRule(tables=("*.kept",), mode="history"))
    live.settings = live.settings.model_copy(update={"rules": rules})
    live.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in TABLES))
    live.run(*(f"INSERT INTO {name} VALUES (1), (2)" for name in TABLES if name != "bare"))
    live.load()
    live.run("DROP TABLE logged", "RENAME TABLE moved TO elsewhere", "DELETE FROM marked WHERE id = 1")
    live.run("SET SESSION sql_log_bin = 0", "DROP TABLE unlogged, marked, bare, kept")
    found = verified(live.spark, live.settings)
    assert found.exit_code == 4
    assert {name: (one.status, one.server_rows, one.warehouse_rows) for name, one in by_table(found).items()} == {
        "elsewhere": ("equal", 2, 2),
        "stays": ("equal", 2, 2),
        "marked": ("different", 0, 1),
        "unlogged": ("different", 0, 2),
    }
    assert {one.differences for one in found.tables} == {0, 1, 2}
    (named,) = verified(live.spark, live.settings, (f"{live.database}.stays",)).tables
    assert named.status == "equal"


def test_a_paused_table_that_was_dropped(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE other (id INT)", "INSERT INTO t VALUES (1)")
    live.load()
    pipeline.pause(live.settings, [f"{live.database}.t"], "ada", "look at it")
    live.run("DROP TABLE t")
    found = by_table(verified(live.spark, live.settings))
    assert {name: one.status for name, one in found.items()} == {"other": "equal", "t": "failed"}
