"""Which transactions are skipped as a whole: by server id, by a marker table, or because they were read before."""

from __future__ import annotations

import numpy as np

from loader.binlog import walk as w
from loader.extract.gtids.marks import gtid_at
from loader.model.gtid import parse_gtid_set
from loader.reader.files.log_walk import LogBytes
from loader.staging.documents import Plan, Skip

KEPT, FROM_SERVER, TOUCHES_MARKER, READ_BEFORE = range(4)

SKIPPED = {
    FROM_SERVER: "row events of transactions from server ids that are skipped",
    TOUCHES_MARKER: "row events of transactions that touch a marker table",
    READ_BEFORE: "row events of transactions that were read from another server before",
}
"""The names under which the balance counts their row events."""


class SkipRule:
    """Decides which transactions of a plan's log are skipped."""

    def __init__(self, plan: Plan) -> None:
        self._skip = plan.skip
        self._before = parse_gtid_set(plan.read_before) if plan.read_before else None

    def of(self, log: LogBytes, transactions: w.Ints) -> w.Ints:
        """Return the skip reason of each transaction (fields walk.T_*), or KEPT.

        Raises:
            BinlogFormatError: a damaged GTID event.
        """
        found = skip_reasons(self._skip, transactions)
        if self._before is not None:
            starts = transactions[:, w.T_START].tolist()
            found[[gtid_at(log, start) in self._before for start in starts]] = READ_BEFORE
        return found


def skip_reasons(skip: Skip, transactions: w.Ints) -> w.Ints:
    """Return the configured skip reason of each transaction, or KEPT."""
    found = transactions[:, w.T_MARKED] * TOUCHES_MARKER
    if skip.server_ids:
        found[np.isin(transactions[:, w.T_SERVER], skip.server_ids)] = FROM_SERVER
    return found
