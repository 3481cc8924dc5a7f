"""The rows of a table in a snapshot of the warehouse, as sums of hashes and as texts."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import identifier
from loader.model.table import TableName, TableSchema
from loader.verify.comparands import comparands_of, comparisons
from loader.verify.expressions import Row, canonical_rows
from loader.verify.key_sample import warehouse_condition
from loader.verify.row_hashes import warehouse_hash
from loader.verify.spec import Sums, TableSums


def snapshot_rows(warehouse: Warehouse, schema: TableSchema, snapshot: int) -> DataFrame:
    """Return the rows of a snapshot that the source has, with the source's names of columns."""
    layout = Layout(schema, warehouse.rule(schema.name))
    return source_rows(warehouse, schema.name, snapshot).select(*compared_columns(layout))


def source_rows(warehouse: Warehouse, table: TableName, snapshot: int) -> DataFrame:
    """Return the rows of a snapshot. With the mode `soft_delete`, rows that are marked as deleted are left out."""
    rows = warehouse.session.sql(f"SELECT * FROM {warehouse.name(table)} VERSION AS OF {snapshot}")
    rule = warehouse.rule(table)
    return rows.where(f"NOT {identifier(rule.deleted_column)}") if rule.mode == "soft_delete" else rows


def compared_columns(layout: Layout) -> list[Expression]:
    """Return the columns of a table of the warehouse that are compared, by the names of their comparands."""
    return [
        sf.col(identifier(layout.name(one.source) + ("__text" if one.is_misfit_text else ""))).alias(one.name)
        for one in comparands_of(layout.schema, layout.rule.on_misfit)
    ]


def sampled_rows(rows: DataFrame, table: TableSums) -> DataFrame:
    """Return the rows that are compared."""
    return rows.where(warehouse_condition(table.sample, table.table_schema))


def warehouse_sums(rows: DataFrame, table: TableSums) -> Sums:
    """Return number and sum of hashes of the rows in each bucket."""
    hashed = rows.selectExpr(f"{warehouse_hash(table.compared_values)} as hash")
    summed = hashed.groupBy((sf.col("hash") % table.buckets).alias("bucket")).agg(
        sf.count("*").alias("amount"), sf.sum(sf.col("hash").cast("decimal(38,0)")).alias("total")
    )
    return {int(row.bucket): (int(row.amount), int(row.total)) for row in summed.collect()}


def warehouse_rows(rows: DataFrame, table: TableSums, wanted: Collection[int]) -> Iterator[Row]:
    """Yield the canonical texts of the rows in the wanted buckets."""
    compared = table.compared_values
    within = rows.where(sf.expr(f"{warehouse_hash(compared)} % {table.buckets}").isin(sorted(wanted)))
    texts = [f"{one.warehouse} as c{place}" for place, one in enumerate(compared)]
    found = within.selectExpr(*texts).toArrow().to_pydict().values()
    yield from canonical_rows(comparisons(compared), zip(*found, strict=True))
