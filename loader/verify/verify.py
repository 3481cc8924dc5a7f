"""Applies the log up to the position of a snapshot of the server, and compares the tables with its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from pyspark.sql import SparkSession

from loader.delta.run import delta
from loader.errors import DataError, RetryableError, UnsupportedError
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.spec import TableResult
from loader.model.table import TableName, TableSchema
from loader.spark.job import failure, rebuild
from loader.verify.spec import SAMPLED_BUCKETS, Sums, TableDifference, TableSums, VerifyResult, VerifySpec
from loader.verify.warehouse_rows import snapshot_rows, warehouse_rows, warehouse_sums


def verify(starting: Future[SparkSession], spec: VerifySpec) -> VerifyResult:
    """Bring all tables to the position of the spec, and compare the tables of the spec.

    Raises:
        LoaderError: the log could not be staged or no table could be begun.
    """
    results = {result.table: result for result in _apply(starting, spec)}
    warehouse = Warehouse(starting.result(), spec.catalog, spec.rules)
    return VerifyResult(tables=tuple(_compare(warehouse, spec, table, results) for table in spec.tables))


def _apply(starting: Future[SparkSession], spec: VerifySpec) -> Sequence[TableResult]:
    if spec.delta is None:
        return ()
    done = delta(starting, spec.delta)
    if done.failed:
        raise rebuild(done.failed)
    return done.materialise.tables


def _compare(
    warehouse: Warehouse, spec: VerifySpec, table: TableSums, results: Mapping[str, TableResult]
) -> TableDifference:
    schema = TableSchema.from_dict(table.definition)
    try:
        _check_rule(warehouse, schema.name)
        if spec.delta:
            _check_result(schema.name, results.get(str(schema.name)), spec.seqno)
        rows = snapshot_rows(warehouse, schema, _head(warehouse, schema.name, spec.seqno))
        found = warehouse_sums(rows, schema, table.buckets)
        buckets = differing_buckets(table.sums, found)
        sampled = set(buckets[:SAMPLED_BUCKETS])
        samples = tuple(warehouse_rows(rows, schema, table.buckets, sampled)) if sampled else ()
    except Exception as error:  # one table must not stop the others
        return TableDifference(table=str(schema.name), error=failure(error))
    return TableDifference(
        table=str(schema.name), rows=sum(count for count, _ in found.values()), buckets=tuple(buckets), samples=samples
    )


def _check_rule(warehouse: Warehouse, table: TableName) -> None:
    if warehouse.rule(table).mode == "history":
        raise UnsupportedError(
            "a history has every change, so it cannot be compared with the rows of the source",
            hint=f"name the other tables: loader verify --table ...; or compare {table} with the log: loader replay",
            table=table,
        )


def differing_buckets(server: Sums, warehouse: Sums) -> Sequence[int]:
    """Return the buckets whose sums differ, in order."""
    return [
        bucket for bucket in sorted(server.keys() | warehouse.keys()) if server.get(bucket) != warehouse.get(bucket)
    ]


def _check_result(table: TableName, result: TableResult | None, seqno: int) -> None:
    """Check that a table has every change before the position.

    Raises:
        DataError: it was never loaded, or it is quarantined.
        RetryableError: it is at an earlier position.
    """
    if result is None:
        raise _unloaded_error(table)
    if result.error:
        raise rebuild(result.error)
    if (result.complete_through or 0) < seqno:
        raise _elsewhere_error(table, result.position)


def _head(warehouse: Warehouse, table: TableName, seqno: int) -> int | None:
    """Return the snapshot that readers see. Commits of others are part of it.

    Raises:
        DataError: the warehouse has no such table.
        RetryableError: it has changes after the position.
    """
    metadata = warehouse.metadata(table)
    if metadata is None:
        raise _unloaded_error(table)
    if metadata.applied and metadata.applied.seqno > seqno:
        raise _elsewhere_error(table, metadata.applied.position)
    return metadata.head


def _unloaded_error(table: TableName) -> DataError:
    hint = f"loader initial-load --table {table}; then: loader verify"
    return DataError("the table was never loaded", hint=hint, table=table)


def _elsewhere_error(table: TableName, position: str) -> RetryableError:
    return RetryableError(
        "the table is not at the position of the server's rows",
        why="another run applied later changes, or run_minutes was over",
        hint="loader run; then: loader verify",
        table=table,
        position=position,
    )
