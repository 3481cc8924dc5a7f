"""Publishing the work of one attempt: a compare-and-swap of main, which happens once although replies may be lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from itertools import takewhile
from types import MappingProxyType

from py4j.java_gateway import JavaObject

from loader.errors import LoaderError, RetryableError, UsageError
from loader.failpoints import failpoint
from loader.materialise.iceberg.table_metadata import RUN, Snapshot, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse
from loader.model.table import TableName
from loader.outages import outage

_LOG = logging.getLogger(__name__)
_PAUSES = (0.25, 0.5, 1, 2, 4, 8, 0)  # seconds after each try to publish, during an outage of the catalog
# HiveAlterHandler of the metastore, whose exceptions have no code.
_REFUSED_TYPES = "types incompatible with the existing columns in their respective positions"

FinishTransaction = Callable[[JavaObject], None]
"""Adds operations to an Iceberg transaction."""
Change = Callable[[JavaObject, TableMetadata], None]
"""Adds the operations of an attempt to an Iceberg transaction, given the metadata on which it was made."""


class BranchLostError(Exception):
    """The attempt cannot become main: main has moved, or its branch is not what this attempt built."""


def is_conflict(error: Exception) -> bool:
    """Return whether another commit caused the error, so that another attempt can succeed.

    Iceberg retries a commit by itself only if the other commit does not conflict with it.
    """
    return isinstance(error, BranchLostError) or "CommitFailedException" in str(error)


def load_existing(warehouse: Warehouse, table: TableName) -> TableMetadata:
    """Return the current metadata of a table.

    Raises:
        LoaderError: the table was dropped.
    """
    metadata = warehouse.metadata(table)
    if metadata is None:
        raise LoaderError("the table was dropped while it was merged", hint=table.load_again, table=table)
    return metadata


def swap_metadata(
    warehouse: Warehouse,
    table: TableName,
    head: int | None,
    change: Change,
    columns: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Change a table in one commit of the catalog, a compare-and-swap: it fails if other metadata is current by then.

    Iceberg's `commitTransaction`, and Spark SQL, would repeat the change on top of other commits.

    Args:
        warehouse: the catalog.
        table: the table.
        head: the head of main that the change was made for.
        change: the change.
        columns: the names by ids of columns that the change was made for.

    Raises:
        BranchLostError: another commit moved main, or dropped or renamed a column. Nothing was changed.
    """
    metadata = load_existing(warehouse, table)
    transaction = metadata.transaction()
    seen = metadata.metadata_of(transaction)
    if seen.head != head:
        raise BranchLostError("main moved")
    # Rows that are written have the ids of their columns, and a column that is added again has another id.
    if not columns.items() <= seen.column_ids.items():
        raise BranchLostError("a column was dropped or renamed")
    change(transaction, seen)
    transaction.underlyingOps().commit(transaction.startMetadata(), transaction.currentMetadata())


class Publication:
    """The publication of one attempt.

    Args:
        warehouse: the catalog.
        table: the table.
        base: main's head, from which the attempt began; None for a table without any commit.
        run: the name that signs the attempt's commits in their summaries.
        roots: other snapshots at which the attempt began.
        columns: the names by ids of the columns to which the attempt wrote.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        table: TableName,
        base: int | None,
        run: str,
        roots: Collection[int | None] = (),
        columns: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._warehouse = warehouse
        self._table = table
        self._base = base
        self._run = run
        self._roots = {base, *roots}
        self._columns = columns

    def publish(self, change: Change) -> None:
        """Commit the change in one transaction, if main is still at the base.

        Raises:
            BranchLostError: another commit moved main, or dropped or renamed a column. Nothing was published.
            RetryableError: the catalog failed. The next attempt finds out whether the table was published.
            UsageError: the catalog is configured to refuse the change.
        """
        failpoint("publish.before")
        for pause in _PAUSES:
            try:
                swap_metadata(self._warehouse, self._table, self._base, change, self._columns)
                break
            except Exception as error:
                if self._is_published(error):
                    break
                failed = error
            if _REFUSED_TYPES in str(failed):
                raise _refused_types_error(self._table) from failed
            if outage(failed):  # wait: the merge that led here may have taken an hour
                time.sleep(pause)
        else:
            raise _unpublished_error(failed, self._table) from failed
        failpoint("publish.after")

    def commits(self) -> list[Snapshot]:
        """Return this attempt's commits in main, newest first."""
        return self._commits_in(load_existing(self._warehouse, self._table))

    def _is_published(self, error: Exception) -> bool:
        """Return whether the attempt was published in spite of an error. Main decides it.

        Return False if main cannot be read: the next attempt reads it before it commits.

        Raises:
            BranchLostError: the attempt was not published and cannot become main any more.
        """
        try:
            metadata = load_existing(self._warehouse, self._table)
        except Exception as unread:
            _LOG.warning("%s: not published yet, and main cannot be read: %s", self._table, unread)
            return False
        if self._commits_in(metadata):
            _LOG.warning("%s: the catalog published the table, although it reported an error", self._table)
            return True
        if metadata.head != self._base:
            raise BranchLostError("main moved") from error
        if isinstance(error, BranchLostError):
            raise error
        # Another property of the table was changed in between, or the catalog failed.
        _LOG.info("%s: not published yet: %s", self._table, error)
        return False

    def _commits_in(self, metadata: TableMetadata) -> list[Snapshot]:
        newer = takewhile(lambda snapshot: snapshot.id not in self._roots, metadata.ancestry(metadata.head))
        return [snapshot for snapshot in newer if snapshot.summary.get(RUN) == self._run]


def _refused_types_error(table: TableName) -> UsageError:
    return UsageError(
        "the Hive Metastore refuses another type at the place of a column",
        why="Iceberg gives it the columns by their place, and the source dropped, moved or replaced columns",
        hint="in the configuration of the metastore: hive.metastore.disallow.incompatible.col.type.changes = false;"
        " restart it, then: loader run",
        table=table,
    )


def _unpublished_error(error: Exception, table: TableName) -> RetryableError:
    known = outage(error)
    return RetryableError(
        "the catalog did not publish the table",
        why=f"{known.what}: {known.why}" if known else str(error),
        hint="loader run; nothing is applied twice",
        table=table,
    )
