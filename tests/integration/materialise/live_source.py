"""A database on a real server, its warehouse, and every stage between them in this process; compared from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pymysql
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from infra.servers import Server
from loader import pipeline
from loader.extract.extraction import extract
from loader.initial_load.run import stage_tables
from loader.materialise.load.load_run import load
from loader.materialise.merge.source_run import materialise
from loader.materialise.spec import MaterialiseResult
from loader.settings import SourceSettings
from loader.spark.workers import Threads
from tests.integration.pipeline.conftest import settings_of
from tests.support.replicas import address_of
from tests.support.sweep import IN_SWEEP

_OWN_COLUMNS = {"_seqno", "_committed_at"}


@dataclass
class LiveSource:
    """The database, and the settings of a source that captures all its tables."""

    spark: SparkSession
    server: Server
    database: str
    settings: SourceSettings

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements in the database, each its own transaction. Return the rows of the last one."""
        connection = pymysql.connect(
            host=self.server.host, port=self.server.port, user=self.server.user, autocommit=True
        )
        with connection, connection.cursor() as cursor:
            for statement in (f"USE {self.database}", *statements):
                cursor.execute(statement)
            return list(cursor.fetchall())

    def load(self, *tables: str) -> MaterialiseResult:
        """Load tables, or all tables."""
        return self._load(tables, again=False)

    def load_again(self, *tables: str) -> MaterialiseResult:
        """Load tables that are loaded already."""
        return self._load(tables, again=True)

    def _load(self, tables: tuple[str, ...], *, again: bool) -> MaterialiseResult:
        names = tuple(f"{self.database}.{table}" for table in tables)
        job = pipeline.read_tables_job(self.settings, names, again=again)
        read = stage_tables(Threads(2), cast("Any", job.spec))
        assert read.exit_code == 0, read
        spec = pipeline.load_tables_job(self.settings, read.manifests).spec
        result = load(self.spark, cast("Any", spec))
        assert result.exit_code == 0, result
        return result

    def stage(self) -> None:
        """Stage everything up to the end of the log."""
        chosen = pipeline.plan_interval(self.settings)
        assert chosen is not None
        extract(Threads(2), cast("Any", pipeline.extract_job(self.settings, chosen.start_seqno).spec))

    def delta(self) -> MaterialiseResult:
        """Stage and merge everything up to the end of the log."""
        self.stage()
        return self.merge()

    def merge(self) -> MaterialiseResult:
        """Merge everything that is staged."""
        return materialise(self.spark, cast("Any", pipeline.materialise_job(self.settings).spec))

    def statuses(self, result: MaterialiseResult) -> dict[str, str]:
        return {one.table.partition(".")[2]: one.status for one in result.tables}

    def warehouse_rows(self, table: str) -> Counter[tuple[Any, ...]] | None:
        """Return the rows of a warehouse table, with its columns sorted by name; None if the table does not exist."""
        folder = Path(self.settings.catalog.warehouse, self.database, table, "metadata")
        files = folder.glob("v*.metadata.json")
        newest = max(files, key=lambda path: int(path.name[1:].partition(".")[0]), default=None)
        if newest is None:
            return None
        arrow = StaticTable.from_metadata(str(newest)).scan().to_arrow()
        names = sorted(name for name in arrow.column_names if name not in _OWN_COLUMNS)
        return Counter(zip(*(arrow.column(name).to_pylist() for name in names), strict=True))

    def server_rows(self, table: str) -> Counter[tuple[Any, ...]]:
        """The rows of a table of the server, with its columns sorted by name."""
        names = sorted(str(row[0]) for row in self.run(f"SHOW COLUMNS FROM {table}"))
        return Counter(self.run(f"SELECT {', '.join(f'`{name}`' for name in names)} FROM {table}"))

    def differences(self) -> list[str]:
        """The tables of the server whose rows are not those of the warehouse."""
        tables = [str(name) for (name,) in self.run("SHOW TABLES")]
        return [name for name in tables if self.server_rows(name) != (self.warehouse_rows(name) or Counter())]


@pytest.fixture(params=["mysql", "mariadb"] if IN_SWEEP else ["mysql"])
def live(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[LiveSource]:
    """An empty database; on each kind of server in a sweep."""
    with live_source(spark, request.getfixturevalue(f"{request.param}_server"), tmp_path) as found:
        yield found


@contextmanager
def live_source(spark: SparkSession, server: Server, folder: Path) -> Iterator[LiveSource]:
    """A new database on a server, which is dropped at the end."""
    database = f"live_{uuid4().hex[:8]}"
    settings = settings_of(address_of(server), f"{database}.*", folder)
    source = LiveSource(spark, server, database, settings)
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user, autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    try:
        yield source
    finally:
        source.run(f"DROP DATABASE {database}")
