"""Tables of a real server whose warehouse tables another tool changes between two merges."""

from __future__ import annotations

import pytest

from loader.materialise.iceberg.table_metadata import commit_properties
from loader.materialise.iceberg.warehouse import Warehouse
from loader.model.table import TableName
from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


@pytest.fixture
def source(live: LiveSource) -> LiveSource:
    live.run(
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), n INT)",
        "INSERT INTO t VALUES (1,'one',1),(2,'two',2)",
    )
    live.load()
    return live


def warehouse_of(source: LiveSource) -> tuple[Warehouse, TableName]:
    return Warehouse(source.spark, source.settings.catalog), TableName(source.database, "t")


def write(source: LiveSource, *statements: str) -> None:
    """Run statements on the warehouse's table, as another tool does."""
    warehouse, name = warehouse_of(source)
    for statement in statements:
        warehouse.session.sql(statement.format(table=warehouse.name(name)))


def stop_reason(source: LiveSource) -> str:
    (result,) = source.delta().tables
    assert result.error
    return str(result.error["what"])


@pytest.mark.parametrize("added", [[], ["ALTER TABLE {table} ADD COLUMN name STRING"]], ids=["dropped", "added again"])
@pytest.mark.parametrize("altered", [[], ["ALTER TABLE t ADD COLUMN z INT"]], ids=["same", "altered"])
def test_a_column_that_another_tool_dropped(source: LiveSource, added: list[str], altered: list[str]) -> None:
    """A merge with other columns would add it again, with NULL in all rows that it does not change."""
    write(source, "ALTER TABLE {table} DROP COLUMN name", *added)
    source.run(*altered, "UPDATE t SET n = 5 WHERE id = 2")
    assert stop_reason(source) == "columns of the warehouse's table were dropped by another tool"
    source.load_again("t")
    source.run("UPDATE t SET n = 6 WHERE id = 2")
    assert source.statuses(source.delta()) == {"t": "applied"}
    assert source.differences() == []


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t DROP COLUMN name"],
        ["ALTER TABLE t DROP COLUMN name", "ALTER TABLE t ADD COLUMN name VARCHAR(9) NOT NULL DEFAULT 'x'"],
    ],
    ids=["dropped", "added again"],
)
def test_a_rollback_over_a_column_that_the_source_dropped(source: LiveSource, statements: list[str]) -> None:
    warehouse, name = warehouse_of(source)
    metadata = warehouse.metadata(name)
    assert metadata is not None
    source.run("UPDATE t SET name = 'zwei' WHERE id = 2", *statements, "UPDATE t SET n = 5 WHERE id = 2")
    source.delta()
    catalog = source.settings.catalog.name
    write(source, f"CALL `{catalog}`.system.rollback_to_snapshot('{source.database}.t', {metadata.head})")
    source.run("INSERT INTO t (id, n) VALUES (3, 3)")
    assert source.statuses(source.delta()) == {"t": "applied"}
    assert source.differences() == []


def test_columns_that_another_tool_dropped_from_a_table_that_is_emptied(source: LiveSource) -> None:
    write(source, "ALTER TABLE {table} DROP COLUMN name")
    source.run("TRUNCATE t", "ALTER TABLE t ADD COLUMN z INT", "INSERT INTO t VALUES (3,'three',3,3)")
    assert source.statuses(source.delta()) == {"t": "applied"}
    assert source.differences() == []


def test_totals_of_a_summary_that_are_wrong(source: LiveSource) -> None:
    """PyIceberg before 0.9.1 counts only the files that an overwrite adds. Later deletes make the total zero."""
    warehouse, name = warehouse_of(source)
    metadata = warehouse.metadata(name)
    assert metadata is not None
    commit_properties(metadata.append("main"), {"deleted-records": "2"})
    changed = warehouse.metadata(name)
    assert changed is not None
    assert changed.totals()["total-records"] == 0
    source.run("UPDATE t SET n = 5 WHERE id = 2", "DELETE FROM t WHERE id = 1")
    assert source.statuses(source.delta()) == {"t": "applied"}
    assert source.differences() == []
