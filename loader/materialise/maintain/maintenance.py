"""Maintains tables as needed: compaction, manifests, old snapshots, orphaned files, branches of dead attempts.

Maintenance may run during merges. Each step is a separate Iceberg commit, under the table's lock if the catalog needs
locks. A compaction that conflicts with a merge is retried. A merge that conflicts with a compaction starts over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from pyspark.sql import Row

from loader.errors import DataError, RetryableError
from loader.failpoints import failpoint
from loader.materialise.iceberg.branch import drop_branch
from loader.materialise.iceberg.commit_lock import table_lock
from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse, check_file_format, check_owner, recorded_schema
from loader.materialise.maintain.snapshot_retention import find_dead_branches, find_expirable
from loader.materialise.maintain.spec import Shape, TableMaintained
from loader.materialise.merge.table_results import replaced_table_error
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import identifier, literal
from loader.model.table import TableName

_LOG = logging.getLogger(__name__)
_TRIES = 3
_MANIFESTS = 50  # with more manifests, planning a query becomes slower
_ORPHANS = timedelta(days=3)  # a younger file may belong to a running merge
_DEAD = timedelta(days=1)  # no attempt takes that long
# Readers pay for each file and each deletion. With more of them, they pay more than a rewrite costs (up to 50 M rows).
_COMPACTION = {"min-input-files": "5", "delete-ratio-threshold": "0.1", "remove-dangling-deletes": "true"}
_CONFLICTS = ("CommitFailedException", "ValidationException")


@dataclass(frozen=True)
class Policy:
    """What maintenance may remove.

    Attributes:
        before: snapshots before this time may expire.
        viewed: by table, the snapshots that views need. They stay.
        now: the time from which ages are counted, in UTC.
        dry_run: change nothing.
        behind: the smallest seqno up to which a table behind has every record; None if no table is behind.
    """

    before: datetime
    viewed: dict[str, set[int]]
    now: datetime
    dry_run: bool = False
    behind: int | None = None


class Maintenance:
    """The maintenance of one table."""

    def __init__(self, warehouse: Warehouse, table: TableName, policy: Policy) -> None:
        self._warehouse = warehouse
        self._table = table
        self._policy = policy
        self._name = literal(warehouse.name(table))

    def run(self, source: str, logs: Mapping[str, str]) -> TableMaintained:
        """Run all steps that are needed.

        Args:
            source: the source that the table must belong to.
            logs: by name, `Generation.log` of the generations that its applied position may belong to.

        Raises:
            DataError: the table is gone, is not the loader's, or has no applied position. Nothing was changed.
            RetryableError: others committed to the table during each attempt.
        """
        began = time.monotonic()
        metadata = self._load()
        if check_owner(metadata, self._table, source, logs) is None and metadata.head is not None:
            raise replaced_table_error(self._table)
        # A compaction writes all rows again.
        check_file_format(metadata, Layout(recorded_schema(metadata, self._table), self._warehouse.rule(self._table)))
        before = _shape(metadata)
        branches = self._step(self._drop_branches)
        compacted = self._step(self._compact)
        manifests = self._step(self._rewrite_manifests)
        expired = self._step(self._expire)
        orphans = self._step(self._remove_orphans)
        return TableMaintained(
            table=str(self._table),
            before=before,
            after=_shape(self._load()),
            compacted=compacted,
            manifests=manifests,
            expired=expired,
            orphans=orphans,
            branches=branches,
            seconds=round(time.monotonic() - began, 3),
        )

    def _step(self, work: Callable[[TableMetadata], int]) -> int:
        """Run one step on the table's current metadata. Return its count."""
        for _ in range(_TRIES):
            try:
                with table_lock(self._warehouse.catalog, self._table):
                    return work(self._load())
            except Exception as error:
                if not any(name in str(error) for name in _CONFLICTS):
                    raise
                _LOG.info("%s: trying again, since another commit came first: %s", self._table, error)
                last = error
        raise RetryableError(
            "others committed to the table during each attempt to maintain it",
            why=str(last)[:500],
            hint=f"run later: loader maintain --table {self._table.argument}",
            table=self._table,
        ) from last

    def _drop_branches(self, metadata: TableMetadata) -> int:
        found = find_dead_branches(metadata, _millis(self._policy.now - _DEAD))
        for name in found if not self._policy.dry_run else ():
            drop_branch(self._warehouse, self._table, name)
        return len(found)

    def _compact(self, metadata: TableMetadata) -> int:
        planned = metadata.count_compactable(cast("Any", self._warehouse.session._jvm), _COMPACTION)
        if not planned or self._policy.dry_run:
            return planned
        options = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in _COMPACTION.items())
        # If rows are sorted by key, a merge skips files outside the range of its keys.
        strategy = "sort" if metadata.write_order else "binpack"
        (row,) = self._call("rewrite_data_files", f"strategy => '{strategy}', options => map({options})")
        failpoint("compact.after")
        return int(row.rewritten_data_files_count)

    def _rewrite_manifests(self, metadata: TableMetadata) -> int:
        found = metadata.totals().get("manifests", 0)
        if found < _MANIFESTS or self._policy.dry_run:
            return found if found >= _MANIFESTS else 0
        (row,) = self._call("rewrite_manifests")
        return int(row.rewritten_manifests_count)

    def _expire(self, metadata: TableMetadata) -> int:
        applied = metadata.applied
        if applied is None:
            return 0  # nothing was ever committed to it
        policy = self._policy
        viewed = policy.viewed.get(str(self._table), set())
        found = find_expirable(metadata, applied, viewed, _millis(policy.before), policy.behind)
        if found and not policy.dry_run:
            ids = ", ".join(map(str, found))
            # Without this early time, the procedure would also expire snapshots by the table's own properties.
            self._call(
                "expire_snapshots", f"older_than => TIMESTAMP '1970-01-02 00:00:00', snapshot_ids => array({ids})"
            )
            failpoint("expire.after")
        return len(found)

    def _remove_orphans(self, _history: TableMetadata) -> int:
        limit = f"{self._policy.now - _ORPHANS:%F %T}"
        dry = "true" if self._policy.dry_run else "false"
        return len(self._call("remove_orphan_files", f"older_than => TIMESTAMP '{limit}', dry_run => {dry}"))

    def _call(self, procedure: str, arguments: str = "") -> list[Row]:
        catalog = identifier(self._warehouse.catalog.name)
        given = ", ".join(filter(None, (f"table => {self._name}", arguments)))
        return self._warehouse.session.sql(f"CALL {catalog}.system.{procedure}({given})").collect()

    def _load(self) -> TableMetadata:
        metadata = self._warehouse.metadata(self._table)
        if metadata is None:
            raise DataError(
                "the table is gone from the warehouse",
                hint=self._table.load_again,
                table=self._table,
            )
        return metadata


def _shape(metadata: TableMetadata) -> Shape:
    totals = metadata.totals()
    return Shape(
        data_files=totals.get("total-data-files", 0),
        delete_files=totals.get("total-delete-files", 0),
        bytes=totals.get("total-files-size", 0),
        manifests=totals.get("manifests", 0),
        snapshots=len(metadata.snapshots),
    )


def _millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
