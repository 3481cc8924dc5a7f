"""Compares all rows and columns of tables on the server and in the warehouse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pymysql.cursors import SSCursor
from pyspark.sql import SparkSession

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import identifier
from loader.model.table import TableName, TableSchema
from loader.source.schemas import read_schemas
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from loader.verify.comparands import Comparand, comparands_of, comparisons
from loader.verify.expressions import Row, canonical_rows
from loader.verify.spec import CompareResult, CompareSpec, TableComparison
from loader.verify.warehouse_rows import compared_columns

_SAMPLES = 5


def compare(spark: SparkSession, spec: CompareSpec) -> CompareResult:
    """Compare tables. Nothing may write to the source meanwhile, and its log must be fully applied.

    Raises:
        LoaderError: the server or the warehouse cannot be read.
    """
    warehouse = Warehouse(spark, spec.catalog, spec.rules)
    names = [TableName.parse(table) for table in spec.tables]
    with connected(spec.server) as connection:
        schemas = read_schemas(connection, names)
    done = [_compare_table(warehouse, spec.server, schema) for schema in schemas]
    return CompareResult(tables=tuple(done))


def _compare_table(warehouse: Warehouse, server: ServerAddress, schema: TableSchema) -> TableComparison:
    layout = Layout(schema, warehouse.rule(schema.name))
    compared = comparands_of(schema, layout.rule.on_misfit)
    theirs = Counter(canonical_rows(comparisons(compared), _server_rows(server, schema.name, compared)))
    ours = Counter(canonical_rows(comparisons(compared), _warehouse_rows(warehouse, layout, compared)))
    missing, extra = theirs - ours, ours - theirs
    samples = [f"only on the server: {row}" for row in list(missing)[:_SAMPLES]]
    samples += [f"only in the warehouse: {row}" for row in list(extra)[:_SAMPLES]]
    return TableComparison(
        table=str(schema.name),
        server_rows=theirs.total(),
        warehouse_rows=ours.total(),
        differences=missing.total() + extra.total(),
        samples=tuple(samples),
    )


def _server_rows(server: ServerAddress, name: TableName, compared: Sequence[Comparand]) -> Iterator[Row]:
    expressions = ", ".join(one.server for one in compared)
    table = f"{identifier(name.schema)}.{identifier(name.table)}"
    with connected(server) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(f"SELECT {expressions} FROM {table}")
        yield from cursor.fetchall_unbuffered()


def _warehouse_rows(warehouse: Warehouse, layout: Layout, compared: Sequence[Comparand]) -> Iterator[Row]:
    frame = warehouse.session.table(warehouse.name(layout.schema.name)).select(*compared_columns(layout))
    texts = frame.selectExpr(*(f"{one.warehouse} as c{n}" for n, one in enumerate(compared)))
    columns = texts.toArrow().to_pydict().values()
    yield from zip(*columns, strict=True)
