"""Names that are equal for MariaDB's catalog, which ignores case and accents, and not for its tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loader.source.bulk_schemas import read_tables
from loader.source.schemas import read_schemas
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
