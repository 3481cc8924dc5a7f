"""One table that cannot go on stops itself alone: it is quarantined, and the runs after this one leave it out."""

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
from loader.staging.quarantine import Quarantine, Quarantines

_LOG = logging.getLogger(__name__)


class RunQuarantine:
    """The quarantined tables of a source, as a run meets and makes them that brings its tables to the end of `last`."""

    def __init__(self, warehouse: Warehouse, quarantines: Quarantines, last: Manifest) -> None:
        self._warehouse = warehouse
        self._quarantines = quarantines
        self._last = last
        self._known = quarantines.all()
        self._stood: dict[TableName, int | None] = {}

    @property
    def quarantined(self) -> set[TableName]:
        """The tables that are quarantined as the run begins."""
        return set(self._known)

    def find_quarantined(self, table: TableName, metadata: TableMetadata | None) -> TableResult | None:
        """The report of a table that is not to be attempted; None for one that is."""
        stands = known_applied(metadata)
        self._stood[table] = stands.seqno if stands else None
        if table not in self._known:
            return None
        found = self._quarantines.still(table, self._stood[table])
        return _quarantined_result(found) if found else None

    def quarantine_failures(self, results: Sequence[TableResult]) -> list[TableResult]:
        """The results of all tables: of those that failed, and that no retry can help, their quarantine.

        One that has moved since the run looked at it was overtaken by another run, and so is only failed: the files
        it missed may have been purged because the other one had done with them. One that waits for a quarantined table,
        whose rows it is to take, waits as long as that. The quarantine of one that got over it ends.
        """
        for result in results:
            over = self._known.get(TableName.parse(result.table))
            if over and not result.error and (result.complete_through or 0) >= self._last.stop_seqno:
                self._quarantines.end(over)
        first = [self._quarantined(one) if is_permanent_failure(one) else one for one in results]
        stopped = {one.table for one in first if one.status == "quarantined"}
        return [
            self._quarantined(waiting) if (waiting := _blocked_by_quarantine(one, stopped)) else one for one in first
        ]

    def _quarantined(self, result: TableResult) -> TableResult:
        table = TableName.parse(result.table)
        stands = self._stands(table)
        if self._stood.get(table) != (stands.seqno if stands else None):
            return result
        failpoint("quarantine.before")
        made = self._quarantines.begin(
            table,
            cast("dict[str, object]", result.error),
            (stands.position, stands.seqno) if stands else None,
            (self._last.stop, self._last.stop_seqno),
        )
        failpoint("quarantine.after")
        _LOG.error("%s is quarantined", table)
        return _quarantined_result(made)

    def _stands(self, table: TableName) -> Applied | None:
        try:
            return known_applied(self._warehouse.metadata(table))
        except DataError:
            return None  # the warehouse can have no table of that name


def is_permanent_failure(result: TableResult) -> bool:
    """Whether a table failed for what is in the data: anything else may be better the next time."""
    return result.status == "failed" and result.error is not None and result.error["exit_code"] == DataError.exit_code


def _blocked_by_quarantine(result: TableResult, stopped: set[str]) -> TableResult | None:
    """A table that failed because of one of those that are stopped, with that as its error."""
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
    """The applied position of a table; None also where it is not known any more."""
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
        error=found.told(),
    )
