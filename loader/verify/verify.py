"""Compares tables in the warehouse with the rows that a server has at a position of its log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pyspark.sql import SparkSession

from loader.errors import DataError, RetryableError
from loader.materialise.iceberg.table_metadata import APPLIED, POSITION, RUN, STATE
from loader.materialise.iceberg.warehouse import Warehouse
from loader.model.table import TableName
from loader.spark.job import failure
from loader.verify.comparable import check_mode
from loader.verify.spec import Sums, TableDifference, TableSums, VerifyResult, VerifySpec
from loader.verify.warehouse_rows import sampled_rows, snapshot_rows, source_rows, warehouse_rows, warehouse_sums

_SHOWN_BUCKETS = 16
_SHOWN_ROWS = 100_000


def verify(spark: SparkSession, spec: VerifySpec) -> VerifyResult:
    """Compare tables. A table that cannot be compared is reported and stops no other table."""
    warehouse = Warehouse(spark, spec.catalog, spec.rules)
    return VerifyResult(
        tables=tuple(_compare(warehouse, spec, table) for table in spec.tables),
        gone=tuple(_count(warehouse, spec, TableName.parse(table)) for table in spec.gone),
    )


def _compare(warehouse: Warehouse, spec: VerifySpec, table: TableSums) -> TableDifference:
    schema = table.table_schema
    try:
        check_mode(warehouse.rule(schema.name), schema.name)
        if not table.rows and _is_empty(warehouse, schema.name):
            return TableDifference(table=str(schema.name))
        snapshot = find_snapshot(warehouse, schema.name, spec.seqno, spec.applied.get(str(schema.name), 0))
        kept = snapshot_rows(warehouse, schema, snapshot)
        rows = sampled_rows(kept, table)
        found = warehouse_sums(rows, table)
        buckets = differing_buckets(table.sums, found)
        shown = first_buckets(buckets, table.sums, found)
        samples = tuple(warehouse_rows(rows, table, set(shown))) if shown else ()
        compared = sum(count for count, _ in found.values())
        number = kept.count() if table.sample else compared
    except Exception as error:  # one table must not stop the others
        return TableDifference(table=str(schema.name), error=failure(error))
    return TableDifference(
        table=str(schema.name),
        rows=number,
        compared=compared,
        buckets=tuple(buckets),
        shown=tuple(shown),
        samples=samples,
    )


def _count(warehouse: Warehouse, spec: VerifySpec, table: TableName) -> TableDifference:
    """Return the number of rows of a table that the server does not have; 0 if a statement in the log removed it."""
    try:
        if _is_empty(warehouse, table):
            return TableDifference(table=str(table))
        snapshot = find_snapshot(warehouse, table, spec.seqno, spec.applied.get(str(table), 0))
        rows = 0 if _was_removed(warehouse, table, snapshot) else source_rows(warehouse, table, snapshot).count()
    except Exception as error:  # one table must not stop the others
        return TableDifference(table=str(table), error=failure(error))
    return TableDifference(table=str(table), rows=rows)


def _was_removed(warehouse: Warehouse, table: TableName, snapshot: int) -> bool:
    """Return whether the newest commit of the loader up to a snapshot dropped the table or renamed it away."""
    metadata = warehouse.metadata(table)
    summaries = (one.summary for one in metadata.ancestry(snapshot)) if metadata else ()
    return next((one.get(STATE) for one in summaries if APPLIED in one), None) == "gone"


def _is_empty(warehouse: Warehouse, table: TableName) -> bool:
    """Return whether a table is not in the warehouse, or never had a row. It is created for its first row."""
    metadata = warehouse.metadata(table)
    return metadata is None or metadata.head is None


def differing_buckets(server: Sums, warehouse: Sums) -> Sequence[int]:
    """Return the buckets whose sums differ, in order."""
    return [
        bucket for bucket in sorted(server.keys() | warehouse.keys()) if server.get(bucket) != warehouse.get(bucket)
    ]


def first_buckets(buckets: Sequence[int], server: Sums, warehouse: Sums) -> Sequence[int]:
    """Return the first buckets, at least one, whose rows fit into memory on both sides."""
    sizes = [max(sums.get(bucket, (0, 0))[0] for sums in (server, warehouse)) for bucket in buckets[:_SHOWN_BUCKETS]]
    fitting = sum(1 for rows in accumulate(sizes) if rows <= _SHOWN_ROWS)
    return buckets[: max(1, fitting)]


def find_snapshot(warehouse: Warehouse, table: TableName, seqno: int, applied: int) -> int:
    """Return the newest snapshot of main without changes after a position. Commits of others are part of it.

    Args:
        warehouse: the catalog.
        table: the table.
        seqno: of the position.
        applied: an applied position of the table, as a seqno. Between it and the position, the log does not change the
            table.

    Raises:
        DataError: the warehouse has no such table.
        RetryableError: no kept snapshot has the rows at the position, or the table was rolled back.
    """
    metadata = warehouse.metadata(table)
    found, later, position = None, set[str | None](), ""
    for snapshot in metadata.ancestry(metadata.head) if metadata else ():
        run, reached = snapshot.summary.get(RUN), snapshot.summary.get(APPLIED)
        if reached and int(reached) > seqno:
            found, position = None, snapshot.summary[POSITION]
            later.add(run)  # which may have made several commits, and signed the last one
        elif found is None and (run is None or run not in later):
            found = snapshot.id
        if found and reached and int(reached) >= applied:
            return found
        if reached and int(reached) < applied:
            if not position:
                raise _rolled_back_error(table, snapshot.summary[POSITION])
            break
    if not position:
        raise DataError(
            "the table was never loaded",
            hint=f"loader initial-load --table {table.argument}; then: loader verify",
            table=table,
        )
    raise RetryableError(
        "the warehouse has no snapshot of the table at the position of the server's rows",
        why="another run applied the log over that position in one commit, or the snapshot has expired",
        hint="loader verify",
        table=table,
        position=position,
    )


def _rolled_back_error(table: TableName, position: str) -> RetryableError:
    return RetryableError(
        "the table is at an earlier position than the run before the comparison had found",
        why="another tool rolled it back meanwhile",
        hint="loader verify, which first brings it up to date again",
        table=table,
        position=position,
    )
