"""What the loader may refuse: reasons in its own words. Any other error of a run is a failure of the test."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

REASONS = [
    r"^the log does not show how ALTER TABLE changed the rows",
    r"^a statement gave rows to (the )?table",
    r"^a column was altered so that the server .*, and the log does not have these rows",
    r"^the column's type would have to change from .* which the warehouse cannot follow",
    r"^the value that a new column has in all rows does not fit its type",
    r"^rows of the table could not be staged",
    r"^table .* waits for table .*, which is quarantined",
    r"^table .* was renamed to the name of a captured table, but it is not in the warehouse",
    r"^the log holds a statement that changed rows, instead of the rows",
    r"^rows of the table were logged and then rolled back",
    r"^table .* cannot be merged up to the RENAME TABLE after which table .* has its rows",
    r"^table .* has no snapshot from right before it was renamed to",
    r"^the table got its name from .*, which only a mirror of a mirror can follow",
    r"^the table was not captured all the time",
    r"^the table was altered while its initial load read it",
    r"^an insert leaves columns out",
    r"^a change leaves columns out, and its row does not exist",
    r"^row images leave columns out, and it is not known which of them are generated",
    r"^row images leave columns out, and MariaDB also leaves out columns that changed",
    r"^1 value does not fit the column's type .* in the key$",
    r"^\d+ values do not fit the column's type .* in the key$",
    r"^the log does not have all changes of the table its foreign keys CASCADE or SET NULL",
    r"its foreign keys CASCADE or SET NULL, and the server does not log the rows that they change",
    r"^deltas were merged past the position of this initial load while its rows were read the table is a history",
    r"^the log leaves a generated column out of changes, whether or not it changes",
    r"^two keys of the table can have the same text",
    r"^a restart of the server may have emptied the table without a log entry",
    r"^a statement that may change the table cannot be read: [^;]* types have a different meaning in sql_mode ORACLE or MAXDB$",
]
"""Patterns over `what` and `why` of an error. Each stops one table, and its printed cure must lead to equal tables."""


_NEVER_LOADED = r"^changes of table .* are staged, but it was never loaded"


def is_known(error: dict[str, Any], excluded: Collection[str]) -> bool:
    """Whether an error is on the list, or one of the surroundings that a retry can help.

    `excluded`: tables that were not captured at some time, so their creation may not have been read.
    """
    if error["where"].get("table", "").partition(".")[2] in excluded and re.search(_NEVER_LOADED, error["what"]):
        return True
    text = f"{error['what']} {error['why']}"
    return bool(error.get("retryable")) or any(re.search(one, text) for one in REASONS)
