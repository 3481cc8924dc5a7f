"""Tables that keep more than the rows of now, and what of them must be equal to the server.

Their modes go by their names, so they take no rows of other tables. Their keys only get more columns: the changes of a
history are done again by the key of their time. `replayed` compares the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

HISTORY = "kept_history"
MODES = {"kept_deleted": "soft_delete", HISTORY: "history"}
"""The mode of each table that is no mirror."""

_OWN = {"mirror": set[str](), "soft_delete": {"_is_deleted"}, "history": {"_op", "_row_offset"}}

Row = tuple[Any, ...]


def mode_of(table: str) -> str:
    return MODES.get(table, "mirror")


def own_columns(mode: str) -> set[str]:
    """Return the columns of a table in the warehouse that the server does not have."""
    return {"_seqno", "_committed_at"} | _OWN[mode]


def rules(database: str, line: str = "") -> str:
    """Return the rules of these tables, as they are written in loader.toml; `line` is in each."""
    return "\n".join(
        f'[[sources.chaos.rules]]\ntables = ["{database}.{table}"]\non_misfit = "null"\nmode = "{mode}"\n{line}'
        for table, mode in MODES.items()
    )


def live_rows(rows: Iterable[Row], deleted: Iterable[bool]) -> list[Row]:
    """Return the rows of a table with mode `soft_delete` that are not marked."""
    return [row for row, gone in zip(rows, deleted, strict=True) if not gone]


def wrongly_deleted(
    rows: Iterable[Row], deleted: Iterable[bool], key: Sequence[int], server: Iterable[Row]
) -> set[Row]:
    """Return the keys of rows that are marked as deleted although the server has them.

    `key`: the places of its columns in a row.
    """
    marked = {_key(row, key) for row, gone in zip(rows, deleted, strict=True) if gone}
    return marked & {_key(row, key) for row in server}


def _key(row: Row, places: Sequence[int]) -> Row:
    return tuple(row[place] for place in places)
