"""Statements of online schema changes and of column tools, and views that swap names, on real servers."""

from __future__ import annotations

import pytest

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.spec import MaterialiseResult
from loader.model.table import TableName
from loader.pipeline import quarantines_of
from loader.staging.documents import TableFilter
from tests.integration.materialise.live_source import LiveSource, live

__all__ = ["live"]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

FILLED = (
    "CREATE TABLE _t_gho LIKE t",
    "ALTER /* gh-ost */ TABLE _t_gho ADD w INT NOT NULL DEFAULT 7",
    "INSERT IGNORE INTO _t_gho (id, v) SELECT id, v FROM t",
)
SENTRY = "CREATE TABLE _t_del (id INT AUTO_INCREMENT PRIMARY KEY) COMMENT='ghost-cut-over-sentry'"
CUT_OVER = (SENTRY, "DROP TABLE _t_del", "RENAME TABLE t TO _t_del, _t_gho TO t")


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1),(2,2)")
    live.load()
    return live


def check(source: LiveSource, result: MaterialiseResult) -> None:
    assert [one.error for one in result.tables if one.error] == []
    assert source.differences() == []


def test_columns_that_move_after_columns_that_move_later(source: LiveSource) -> None:
    """Tools that sort columns write such statements."""
    source.run("ALTER TABLE t ADD a INT DEFAULT 3, ADD b INT DEFAULT 4", "INSERT INTO t VALUES (3,30,31,32)")
    source.run("ALTER TABLE t MODIFY v INT AFTER a, MODIFY a INT AFTER c, CHANGE b c INT FIRST")
    check(source, source.delta())
    source.run(
        "ALTER TABLE t ADD d INT DEFAULT 5 AFTER id, MODIFY id INT NOT NULL FIRST", "INSERT INTO t (id) VALUES (4)"
    )
    check(source, source.delta())


@pytest.mark.parametrize("each", [True, False])
def test_a_cut_over_that_fails_and_is_tried_again(source: LiveSource, each: bool) -> None:
    failed = (*FILLED, SENTRY, "DROP TABLE _t_del", SENTRY, "DROP TABLE IF EXISTS _t_del", "DROP TABLE _t_gho")
    again = (*FILLED, "UPDATE t SET v = 3 WHERE id = 1", "REPLACE INTO _t_gho (id, v) VALUES (1,3)", *CUT_OVER)
    for statement in (*failed, *again, "INSERT INTO t VALUES (5,5,5)", "DROP TABLE _t_del"):
        source.run(statement)
        if each:
            check(source, source.delta())
    source.run("DELETE FROM t WHERE id = 2")
    check(source, source.delta())


def test_views_that_swap_their_names(source: LiveSource) -> None:
    """The log does not tell a view from a table. The fix that the error names works, also for views that are gone."""
    source.run("CREATE VIEW w AS SELECT 1 AS a", "CREATE VIEW w_new AS SELECT 2 AS a")
    source.run("RENAME TABLE w TO w_old, w_new TO w")
    assert source.statuses(source.delta()) == {"t": "unchanged", "w": "quarantined", "w_old": "quarantined"}
    found = quarantines_of(source.settings).all()
    hints = {str(table): str(quarantine.error["hint"]) for table, quarantine in found.items()}
    assert all(
        f"if it is a view, or the server has no such table, add '{name}' to tables.exclude" in hint
        for name, hint in hints.items()
    ), hints
    captured = source.settings.tables
    source.settings = source.settings.model_copy(
        update={"tables": TableFilter(include=captured.include, exclude=tuple(hints))}
    )
    source.run("DROP VIEW w, w_old", "INSERT INTO t VALUES (3,3)")
    check(source, source.delta())
    assert quarantines_of(source.settings).all() == {}


def test_a_dropped_database_whose_name_has_brackets(live: LiveSource) -> None:
    """The tables are captured by their names. `CREATE TABLE IF NOT EXISTS` makes a table after that."""
    database = f"{live.database}[b]"
    table = TableName(database, "t")
    live.settings = live.settings.model_copy(update={"tables": TableFilter(include=(str(table), f"{live.database}.*"))})
    create = f"CREATE TABLE IF NOT EXISTS `{database}`.t (id INT PRIMARY KEY)"
    live.run(f"CREATE DATABASE `{database}`", create, f"INSERT INTO `{database}`.t VALUES (1),(2)")
    live.load()
    live.run(f"DROP DATABASE `{database}`", f"CREATE DATABASE `{database}`", create)
    live.run(f"INSERT INTO `{database}`.t VALUES (3)")
    assert live.delta().exit_code == 0
    live.run(f"DROP DATABASE `{database}`")
    warehouse = Warehouse(live.spark, live.settings.catalog)
    assert [row.id for row in warehouse.session.table(warehouse.name(table)).collect()] == [3]
