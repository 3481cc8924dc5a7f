"""A source on MySQL whose chain has begun, with a table of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.servers import Server
from loader import pipeline
from loader.extract.spec import TransportSettings
from loader.materialise.spec import CatalogSettings
from loader.model.position import Position
from loader.settings import IntervalLimits, Retention, SourceSettings
from loader.spark.settings import SparkSettings
from loader.staging.documents import Skip, TableFilter
from loader.transport.server.address import ServerAddress
from tests.integration.initial_load.source_server import SourceServer
from tests.support.replicas import run


@dataclass
class Source:
    """The settings of a source, and its server."""

    server: SourceServer
    settings: SourceSettings

    def limited(self, **limits: int) -> SourceSettings:
        """The settings with these limits only."""
        return self.settings.model_copy(update={"interval": IntervalLimits(**{"bytes": 0, **limits})})

    def insert(self, *numbers: int) -> None:
        """A transaction for each number."""
        self.server.run(*(f"INSERT INTO {self.server.schema}.orders VALUES ({number}, 'x')" for number in numbers))

    def end(self) -> Position:
        """The end of the server's log."""
        return self.server.log_end()


def settings_of(address: ServerAddress, tables: str, folder: Path) -> SourceSettings:
    """A source on that server whose staging and warehouse are in the folder."""
    return SourceSettings(
        name="shop",
        server=address,
        transport=TransportSettings(kind="network", server=address),
        tables=TableFilter(include=(tables,)),
        skip=Skip(),
        update_rows="after",
        undecodable="error",
        part_bytes=65536,
        chunk_rows=1000,
        run_minutes=30,
        min_runway_hours=0,
        interval=IntervalLimits(),
        retention=Retention(),
        staging_root=f"file://{folder}/staging",
        catalog=CatalogSettings(type="hadoop", warehouse=f"{folder}/warehouse"),
        spark=SparkSettings(jars=str(folder)),
    )


@pytest.fixture
def source(mysql_server: Any, tmp_path: Path) -> Iterator[Source]:
    server = SourceServer(mysql_server)
    server.run(f"CREATE TABLE {server.schema}.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    settings = settings_of(server.address, f"{server.schema}.*", tmp_path)
    pipeline.begin(settings)
    yield Source(server, settings)
    server.drop()


@pytest.fixture(params=[("mysql", "MINIMAL"), ("mariadb", "NO_LOG")], ids="-".join)
def logged(request: pytest.FixtureRequest) -> Iterator[tuple[Server, str]]:
    kind, metadata = request.param
    server = request.getfixturevalue(f"{kind}_server")
    try:
        yield server, metadata
    finally:
        run(server, "SET GLOBAL binlog_row_metadata = FULL", "DROP DATABASE IF EXISTS nameless")
