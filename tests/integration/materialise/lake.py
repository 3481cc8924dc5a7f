"""A staging root and a warehouse, and the two jobs run on them in the tests' own Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.load_run import load
from loader.materialise.merge.source_run import materialise
from loader.materialise.rules import TableRule
from loader.materialise.spec import (
    CatalogSettings,
    LoadSpec,
    MaterialiseResult,
    MaterialiseSpec,
    TableResult,
)
from loader.model.table import TableName, TableSchema
from tests.integration.materialise.staged_writer import GENERATION, SOURCE, Staging


class Lake:
    """Everything one test needs; `folder` is its own."""

    def __init__(self, spark: SparkSession, folder: Path, catalog: CatalogSettings | None = None) -> None:
        self.spark = spark
        self.folder = folder
        self.staging = Staging(folder / "staging")
        self.catalog = catalog or CatalogSettings(type="hadoop", warehouse=f"file://{folder / 'warehouse'}")
        self.rules: tuple[TableRule, ...] = ()
        self.warehouse = Warehouse(spark, self.catalog)

    def merge_spec(self, through: int | None = None) -> MaterialiseSpec:
        return MaterialiseSpec(
            source=SOURCE,
            generation=GENERATION,
            staging_root=self.staging.store.root,
            catalog=self.catalog,
            rules=self.rules,
            through_seqno=through,
        )

    def load_spec(self, keys: Sequence[str]) -> LoadSpec:
        return LoadSpec(
            source=SOURCE,
            generation=GENERATION,
            staging_root=self.staging.store.root,
            catalog=self.catalog,
            rules=self.rules,
            manifests=tuple(keys),
        )

    def loaded(self, *keys: str) -> MaterialiseResult:
        return load(self.spark, self.load_spec(keys))

    def merged(self, through: int | None = None) -> MaterialiseResult:
        return materialise(self.spark, self.merge_spec(through))

    def one(self, result: MaterialiseResult) -> TableResult:
        """The only table's result, which must not be a failure."""
        (table,) = result.tables
        assert table.status != "failed", table.error
        return table

    def rows(self, schema: TableSchema) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """The warehouse's rows by key, as Python values; fails on a key that is there twice."""
        names = [column.name for column in schema.columns]
        found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for row in self.warehouse.session.table(self.warehouse.name(schema.name)).collect():
            values = tuple(_plain(row[name]) for name in names)
            key = tuple(values[names.index(name)] for name in schema.key)
            assert key not in found, f"key {key} twice"
            found[key] = values
        return found

    def bag(self, name: TableName, *columns: str) -> Counter[tuple[Any, ...]]:
        """The rows, of these columns or of all, each with the number of times that it is there."""
        frame = self.warehouse.session.table(self.warehouse.name(name))
        rows = frame.select(*columns or frame.columns).collect()
        return Counter(tuple(_plain(value) for value in row) for row in rows)

    def metadata(self, schema: TableSchema | TableName) -> TableMetadata:
        name = schema if isinstance(schema, TableName) else schema.name
        metadata = self.warehouse.metadata(name)
        assert metadata is not None
        return metadata

    def sql(self, statement: str) -> list[Any]:
        return self.warehouse.session.sql(statement).collect()


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
