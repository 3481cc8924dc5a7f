"""Compares all rows and columns of tables on the server and in the warehouse."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator

from pymysql.cursors import SSCursor
from pyspark.sql import SparkSession

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.quoting import identifier
from loader.model.table import Column, TableName, TableSchema
from loader.source.schemas import read_schemas
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from loader.types.column_type import Comparison
from loader.verify.expressions import comparison_of, in_warehouse, on_server
from loader.verify.spec import CompareResult, CompareSpec, TableComparison

_SAMPLES = 5
Row = tuple[str | None, ...]


def compare(spark: SparkSession, spec: CompareSpec) -> CompareResult:
    """Compare tables. Nothing may write to the source meanwhile, and its log must be fully applied.

    Raises:
        LoaderError: the server or the warehouse cannot be read.
    """
    warehouse = Warehouse(spark, spec.catalog)
    names = [TableName.parse(table) for table in spec.tables]
    with connected(spec.server) as connection:
        schemas = read_schemas(connection, names)
    done = [_compare_table(warehouse, spec.server, schema) for schema in schemas]
    return CompareResult(tables=tuple(done))


def _compare_table(warehouse: Warehouse, server: ServerAddress, schema: TableSchema) -> TableComparison:
    theirs = Counter(_canonical(schema.columns, _server_rows(server, schema)))
    ours = Counter(_canonical(schema.columns, _warehouse_rows(warehouse, schema)))
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


def _server_rows(server: ServerAddress, schema: TableSchema) -> Iterator[Row]:
    expressions = ", ".join(on_server(column) for column in schema.columns)
    table = f"{identifier(schema.name.schema)}.{identifier(schema.name.table)}"
    with connected(server) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(f"SELECT {expressions} FROM {table}")
        yield from cursor.fetchall_unbuffered()


def _warehouse_rows(warehouse: Warehouse, schema: TableSchema) -> Iterator[Row]:
    frame = warehouse.session.table(warehouse.name(schema.name))
    texts = frame.selectExpr(*(f"{in_warehouse(column)} as c{n}" for n, column in enumerate(schema.columns)))
    columns = texts.toArrow().to_pydict().values()
    yield from zip(*columns, strict=True)


def _canonical(columns: tuple[Column, ...], rows: Iterable[Row]) -> Iterator[Row]:
    ways = [(n, comparison_of(column)) for n, column in enumerate(columns)]
    numbers = [(n, way is Comparison.SINGLE) for n, way in ways if way in {Comparison.SINGLE, Comparison.DOUBLE}]
    vectors = [n for n, way in ways if way is Comparison.VECTOR]
    for row in rows:
        if not numbers and not vectors:
            yield tuple(row)
            continue
        texts = list(row)
        for n in vectors:
            texts[n] = _vector(texts[n])
        for n, single in numbers:
            texts[n] = _number(texts[n], single)
        yield tuple(texts)


def _vector(text: str | None) -> str | None:
    """Return a vector as the hex text of its bytes, as the server gives it. The warehouse has it as a list."""
    if text is None or not text.startswith("["):
        return text
    numbers = [float(number) for number in text[1:-1].split(",") if number]
    return struct.pack(f"<{len(numbers)}f", *numbers).hex().upper()


def _number(text: str | None, single: bool) -> str | None:
    if text is None:
        return None
    value = float(text)
    return repr(struct.unpack("f", struct.pack("f", value))[0] if single else value)
