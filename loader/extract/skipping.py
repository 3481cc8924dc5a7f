"""Which transactions are skipped whole, and why: they come from a server id, or touch a marker table."""

from __future__ import annotations

import numpy as np

from loader.binlog import walk as w
from loader.staging.documents import Skip

KEPT, FROM_SERVER, TOUCHES_MARKER = range(3)

SKIPPED = {
    FROM_SERVER: "row events of transactions from server ids that are skipped",
    TOUCHES_MARKER: "row events of transactions that touch a marker table",
}
"""What the balance says of their row events."""


def reasons(skip: Skip, transactions: w.Ints) -> w.Ints:
    """Of each transaction (fields walk.T_*) why it is skipped, or KEPT."""
    found = transactions[:, w.T_MARKED] * TOUCHES_MARKER
    if skip.server_ids:
        found[np.isin(transactions[:, w.T_SERVER], skip.server_ids)] = FROM_SERVER
    return found
