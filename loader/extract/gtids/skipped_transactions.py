"""Finds transactions to skip: of a server id, with a marker table, recorded by an operator, or read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from loader.binlog import walk as w
from loader.extract.gtids.marks import gtid_at
from loader.model.gtid import parse_gtid_set
from loader.model.table import TableName
from loader.reader.files.log_walk import LogBytes
from loader.staging.documents import Plan, Skip
from loader.staging.entries import SkippedRows

KEPT, FROM_SERVER, TOUCHES_MARKER, READ_BEFORE, BY_OPERATOR = range(5)

SKIPPED = {
    FROM_SERVER: "row events of transactions from server ids that are skipped",
    TOUCHES_MARKER: "row events of transactions that touch a marker table",
    READ_BEFORE: "row events of transactions that were read from another server before",
    BY_OPERATOR: "row events of transactions that an operator skipped",
}
"""The names under which the balance counts their row events."""


@dataclass(frozen=True)
class SkippedTransactions:
    """The transactions of an index to skip, as a whole or for some tables.

    Attributes:
        why: for each transaction its skip reason, or KEPT.
        tables: by the number of a transaction, the tables whose rows in it an operator skipped.
        keys: of the records of operators that were used.
    """

    why: w.Ints
    tables: Mapping[int, frozenset[TableName]] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()


class SkipRule:
    """Decides what is skipped in a plan's log."""

    def __init__(self, plan: Plan) -> None:
        self._skip = plan.skip
        self._before = parse_gtid_set(plan.read_before) if plan.read_before else None
        self._by_place: dict[tuple[str, int], list[SkippedRows]] = {}
        self._by_gtid: dict[str, list[SkippedRows]] = {}
        for one in plan.skips:
            file, _, start = one.place.rpartition(":")
            if one.place:
                self._by_place.setdefault((file, int(start)), []).append(one)
            else:
                self._by_gtid.setdefault(one.gtid, []).append(one)

    def of(self, log: LogBytes, transactions: w.Ints) -> SkippedTransactions:
        """Return which of these transactions (fields walk.T_*) to skip.

        Raises:
            BinlogFormatError: a damaged GTID event.
        """
        found = skip_reasons(self._skip, transactions)
        starts: list[int] = transactions[:, w.T_START].tolist()
        if self._before is not None:
            found[[gtid_at(log, start) in self._before for start in starts]] = READ_BEFORE
        if not (self._by_place or self._by_gtid):
            return SkippedTransactions(found)
        return self._by_operators(found, self._records(log, transactions[:, w.T_START]))

    def _records(self, log: LogBytes, starts: w.Ints) -> dict[int, list[SkippedRows]]:
        """Return the skips of transactions that begin at these offsets, by the number of the transaction."""
        found: dict[int, list[SkippedRows]] = {}
        for (file, start), skips in self._by_place.items():
            for number in np.flatnonzero(starts == start).tolist() if file == log.name else ():
                found.setdefault(number, []).extend(skips)
        for number, start in enumerate(starts.tolist()) if self._by_gtid else ():
            if skips := self._by_gtid.get(str(gtid_at(log, start)), []):
                found.setdefault(number, []).extend(skips)
        return found

    def _by_operators(self, found: w.Ints, records: Mapping[int, list[SkippedRows]]) -> SkippedTransactions:
        tables: dict[int, frozenset[TableName]] = {}
        keys: set[str] = set()
        for number, skips in records.items():
            keys.update(one.key for one in skips)
            if any(not one.table for one in skips):
                found[number] = BY_OPERATOR
            elif skips:
                tables[number] = _names(skips)
        return SkippedTransactions(found, tables, frozenset(keys))


def _names(skips: Iterable[SkippedRows]) -> frozenset[TableName]:
    return frozenset(TableName.parse(one.table) for one in skips)


def skip_reasons(skip: Skip, transactions: w.Ints) -> w.Ints:
    """Return the configured skip reason of each transaction, or KEPT."""
    found = transactions[:, w.T_MARKED] * TOUCHES_MARKER
    if skip.server_ids:
        found[np.isin(transactions[:, w.T_SERVER], skip.server_ids)] = FROM_SERVER
    return found
