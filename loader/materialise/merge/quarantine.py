"""The quarantine of tables during a run. A table that fails permanently stops only itself, until it is released."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import cast

from loader.errors import DataError
from loader.failpoints import failpoint
from loader.materialise.iceberg.table_metadata import Applied, TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.notes.quarantine import Quarantine, Quarantines

_LOG = logging.getLogger(__name__)


class RunQuarantine:
    """The quarantined tables of a source during a run that merges up to the stop of `last`."""

    def __init__(self, warehouse: Warehouse, quarantines: Quarantines, last: Manifest) -> None:
        self._warehouse = warehouse
        self._quarantines = quarantines
        self._last = last
        self._known = quarantines.all()
        self._applied_before: dict[TableName, int | None] = {}

    @property
    def quarantined(self) -> set[TableName]:
        """The tables that are quarantined when the run begins."""
        return set(self._known)

    def stop_of(self, table: TableName) -> int:
        """Return the stop, as a seqno, of the run that quarantined a table."""
        return self._known[table].stop_seqno

    def end(self, table: TableName) -> None:
        """End the quarantine of a table, if it has one."""
        if table in self._known:
            self._quarantines.end(self._known[table])

    def find_quarantined(self, table: TableName, metadata: TableMetadata | None) -> TableResult | None:
        """Return the result of a quarantined table; None if the table must be merged."""
        applied = known_applied(metadata)
        self._applied_before[table] = applied.seqno if applied else None
        if table not in self._known:
            return None
        quarantine = self._quarantines.find_current(table, self._applied_before[table])
        return _quarantined_result(quarantine) if quarantine else None

    def note_advanced(self, table: TableName, seqno: int) -> None:
        """Note that this run itself brought a table to a seqno. It may fail afterwards."""
        self._applied_before[table] = seqno

    def quarantine_failures(self, results: Sequence[TableResult]) -> list[TableResult]:
        """Quarantine the tables that failed permanently. Return the results of all tables.

        A table that another run moved is not quarantined: that run has overtaken this one, and may have purged the
        files that were missing here. A table that waits for the rows of a quarantined table is quarantined too. The
        quarantine of a table ends once it reaches the stop. If it fails again, the new error replaces the old one.
        """
        for result in results:
            ended = self._known.get(TableName.parse(result.table))
            if ended and not result.error and (result.complete_through or 0) >= self._last.stop_seqno:
                self._quarantines.end(ended)
        first = [self._quarantined(one) if is_permanent_failure(one) else one for one in results]
        stopped = {one.table for one in first if one.status == "quarantined"}
        return [
            self._quarantined(waiting) if (waiting := _blocked_by_quarantine(one, stopped)) else one for one in first
        ]

    def _quarantined(self, result: TableResult) -> TableResult:
        table = TableName.parse(result.table)
        applied = self._read_applied(table)
        if self._applied_before.get(table) != (applied.seqno if applied else None):
            return result
        failpoint("quarantine.before")
        self.end(table)
        quarantine = self._quarantines.begin(
            table,
            cast("dict[str, object]", result.error),
            (applied.position, applied.seqno) if applied else None,
            (self._last.stop, self._last.stop_seqno),
        )
        failpoint("quarantine.after")
        _LOG.error("%s is quarantined", table)
        return _quarantined_result(quarantine)

    def _read_applied(self, table: TableName) -> Applied | None:
        try:
            return known_applied(self._warehouse.metadata(table))
        except DataError:
            return None  # the warehouse cannot have a table of this name


def is_permanent_failure(result: TableResult) -> bool:
    """Return whether a table failed because of its data. Any other failure may be over at the next try."""
    return result.status == "failed" and result.error is not None and result.error["exit_code"] == DataError.exit_code


def _blocked_by_quarantine(result: TableResult, stopped: set[str]) -> TableResult | None:
    """Return the result of a table that waits for a quarantined table, with an error that says so; else None."""
    other = result.error["where"].get("table", result.table) if result.error else result.table
    if result.status != "failed" or result.error is None or other == result.table or other not in stopped:
        return None
    waits = DataError(
        f"table {result.table} waits for table {other}, which is quarantined",
        why=result.error["what"],
        hint=f"{TableName.parse(result.table).load_again};"
        f" or fix the cause, then: loader release {TableName.parse(other).argument}",
        table=result.table,
    )
    return result.model_copy(update={"error": waits.as_dict()})


def known_applied(metadata: TableMetadata | None) -> Applied | None:
    """Return the applied position of a table; None if it has none or if its snapshot has expired."""
    try:
        return metadata.applied if metadata else None
    except DataError:
        return None


def _quarantined_result(found: Quarantine) -> TableResult:
    return TableResult(
        table=found.table,
        status="quarantined",
        applied_seqno=found.applied_seqno,
        position=found.applied,
        error=found.error_with_release(),
    )
