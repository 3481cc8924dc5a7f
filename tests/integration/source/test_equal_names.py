"""Names that are equal for MariaDB's catalog, which ignores case and accents, and not for its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymysql.connections import Connection

from loader.model.table import TableName
from loader.source.bulk_schemas import read_tables
from loader.source.schemas import find_tables, read_schemas
from loader.source.side_effects import read_side_effects
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration


@pytest.fixture(params=["mysql", "mariadb"])
def source(request: pytest.FixtureRequest) -> Iterator[SourceServer]:
    made = SourceServer(request.getfixturevalue(f"{request.param}_server"))
    yield made
    made.drop()


@pytest.mark.parametrize("names", [("Orders", "orders"), ("cafe", "café", "CAFE")])
def test_each_table_has_its_columns_and_key(source: SourceServer, names: tuple[str, ...]) -> None:
    tables = sorted(map(source.name, names))
    source.run(*(f"CREATE TABLE `{name}` (`{name}` INT PRIMARY KEY)" for name in names))
    with source.connected() as connection:
        told = read_tables(connection, tables.__contains__).tables
        found = read_schemas(connection, tables)
    assert [(schema.name, schema.columns[0].name, schema.key) for schema in found] == [
        (name, name.table, (name.table,)) for name in tables
    ]
    assert [told[name].schema for name in tables] == found


def _written(connection: Connection[Any]) -> tuple[str, ...]:
    found = read_side_effects(connection)
    assert found is not None
    return found.written


def test_each_table_with_a_trigger_has_side_effects(source: SourceServer) -> None:
    for number, name in enumerate(("cafe", "café")):
        source.run(
            f"CREATE TABLE `{name}` (id INT PRIMARY KEY)",
            f"CREATE TRIGGER on_{number} AFTER INSERT ON `{name}` FOR EACH ROW SET @inserted = 1",
        )
    with source.connected() as connection:
        assert {"cafe", "café"} <= set(_written(connection))


def test_a_database_with_the_name_of_a_system_schema_in_capitals(source: SourceServer) -> None:
    table = TableName("SYS", "t")
    source.run(
        "CREATE DATABASE SYS CHARACTER SET utf8mb4",
        "CREATE TABLE SYS.t (id INT PRIMARY KEY)",
        "CREATE TRIGGER SYS.on_t AFTER INSERT ON SYS.t FOR EACH ROW SET @inserted = 1",
    )
    try:
        with source.connected() as connection:
            assert find_tables(connection, table.__eq__) == [table]
            told = read_tables(connection, table.__eq__)
            assert "t" in _written(connection)
    finally:
        source.run("DROP DATABASE SYS")
    assert list(told.tables) == [table]
    assert told.charsets["SYS"] == "utf8mb4"
