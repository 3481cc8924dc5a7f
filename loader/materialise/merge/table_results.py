"""Results of tables that a run does not merge, and errors of tables that cannot be merged. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from loader.errors import DataError, LoaderError, RetryableError, UnsupportedError
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.notes.quarantine import Quarantine
from loader.staging.published import Published

if TYPE_CHECKING:
    from loader.materialise.iceberg.table_metadata import Applied  # which imports pyspark


class WaitingForTable(RetryableError):
    """A table takes the rows of another table, named by `where["table"]`, which must be merged further first."""


def idle_result(
    table: TableName, applied: Applied | None, status: Literal["already", "unchanged"], complete: int
) -> TableResult:
    """Return the result of a table that needs no merge, with every record up to the seqno `complete`."""
    if applied is None:
        return TableResult(table=str(table), status=status, complete_through=complete)
    return TableResult(
        table=str(table),
        status=status,
        applied_seqno=applied.seqno,
        position=applied.position,
        snapshot=applied.snapshot,
        complete_through=complete,
    )


def results_of_record(
    record: Published,
    quarantined: Mapping[TableName, Quarantine],
    status: Literal["already", "unchanged"],
    complete: int | None = None,
    postponed: Sequence[TableResult] = (),
) -> list[TableResult]:
    """Return the results of all tables of a published record, sorted by table.

    Args:
        record: the published record.
        quarantined: the quarantines of all tables behind the record that are not postponed.
        status: of the tables in the record.
        complete: the seqno up to which the tables in the record have every record, if that is established.
        postponed: the results of the postponed tables of the record.
    """
    errors = {str(table): quarantine.error_with_release() for table, quarantine in quarantined.items()}
    behind = [
        TableResult(table=name, status="quarantined", applied_seqno=seqno, error=errors[name])
        for name, seqno in record.behind.items()
        if name not in record.postponed
    ]
    published = [
        TableResult(
            table=name,
            status=status,
            applied_seqno=table.applied,
            snapshot=table.snapshot,
            complete_through=complete,
        )
        for name, table in record.tables.items()
    ]
    return sorted([*behind, *postponed, *published], key=lambda result: result.table)


def no_progress_error(table: TableName, target: int, why: str) -> LoaderError:
    """Return the error of a table that stays before the seqno `target` without a cause. No retry can help."""
    return LoaderError(
        "the table does not advance to its target, and another run would not change that",
        why=why,
        hint=f"{table.load_again}; this is a fault of the loader, please report it",
        table=table,
        seqno=target,
    )


def replaced_table_error(table: TableName) -> DataError:
    """Return the error of a loader table with rows but without an applied position."""
    return DataError(
        "the table was replaced in the warehouse",
        why="no ancestor of its newest snapshot is a commit of the loader",
        hint=table.load_again,
        table=table,
    )


def unknown_position_error(table: TableName, position: str) -> DataError:
    """Return the error of a table whose applied position is beyond everything that the chain planned or loaded."""
    return DataError(
        "the table's applied position is not in the log of this source",
        why=f"it is {position}, beyond everything that was planned or loaded: the table is from another server, or from"
        " another staging root",
        hint="if staging.root was changed, set it back; otherwise drop the table in the warehouse, then:"
        f" {table.load_again}",
        table=table,
    )


def unfinished_merge_error(table: TableName, rollback: str) -> DataError:
    """Return the error of a table that somebody rolled back to a commit inside a merge.

    `rollback`: the statement that rolls it back to the end of the merge before.
    """
    return DataError(
        "the table was rolled back to a snapshot inside a merge",
        why="a part of the changes of the merge is in the table, and the merge of the others would repeat that part",
        hint=f"in Spark SQL: {rollback}",
        table=table,
    )


def lost_table_error(table: TableName) -> DataError:
    """Return the error of a table of the newest published record that the warehouse does not have."""
    return DataError(
        "the table is gone from the warehouse",
        why="the newest published record has it, and no statement in the log dropped it or renamed it away",
        hint=f"{table.load_again}; if the server does not have the table: {table.exclusion}",
        table=table,
    )


def never_loaded_error(table: TableName, taker: TableName) -> UnsupportedError:
    """Return the error of a table, `taker`, that takes the rows of a table that the warehouse does not have."""
    return UnsupportedError(
        f"table {table} was renamed to the name of a captured table, but it is not in the warehouse",
        why="its rows were never loaded, so the rows that it brought are unknown",
        hint=_load_or_exclude(taker),
        table=table,
    )


def no_snapshot_error(table: TableName, taker: TableName, *, expired: bool = False) -> UnsupportedError:
    """Return the error of a table that has no snapshot with the rows that `taker` takes."""
    return UnsupportedError(
        f"table {table} has no snapshot from right before it was renamed to {taker}",
        why="the snapshot has expired"
        if expired
        else "it was loaded again, or merged past the rename, before its earlier changes were applied",
        hint=taker.load_again,
        table=table,
    )


def rows_unavailable_error(table: TableName, taker: TableName, error: LoaderError) -> UnsupportedError:
    """Return the error of `taker`, which takes the rows of a table that stops before the rename because of `error`."""
    return UnsupportedError(
        f"table {table} cannot be merged up to the RENAME TABLE after which table {taker} has its rows",
        why=f"{error.what}: {error.why}" if error.why else error.what,
        hint=_load_or_exclude(taker) if error.hint == _load_or_exclude(table) else taker.load_again,
        table=taker,
        position=error.where.get("position"),
    )


def _load_or_exclude(taker: TableName) -> str:
    """Return the hint for a new name. The log does not tell whether a table, a view or nothing (IF EXISTS) got it."""
    return f"{taker.load_again}; if it is a view, or the server has no such table, {taker.exclusion}"
