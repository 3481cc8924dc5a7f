"""Tables that keep more than the rows of now, and what of them must be equal to the server.

Statements about tables leave histories alone: what a history has of rows before an ALTER TABLE is not what the server
has. Statements that change names leave both alone, because their modes go by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

MODES = {"kept_deleted": "soft_delete", "kept_history": "history"}
"""The mode of each table that is no mirror."""

_OWN = {"mirror": set[str](), "soft_delete": {"_is_deleted"}, "history": {"_op", "_row_offset"}}

Row = tuple[Any, ...]


def mode_of(table: str) -> str:
    return MODES.get(table, "mirror")


def own_columns(mode: str) -> set[str]:
    """Return the columns of a table in the warehouse that the server does not have."""
    return {"_seqno", "_committed_at"} | _OWN[mode]


def rules(database: str, line: str = "") -> str:
    """Return the rules of these tables, as they are written in loader.toml; `line` is a line of each."""
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


def replayed(
    rows: Iterable[Row], order: Iterable[tuple[int, int]], ops: Iterable[str], key: Sequence[int], loaded: int = 0
) -> list[Row]:
    """Return the rows that are left when every change of a history is done again, in the order of the log.

    The load may have read rows that are changed after its position. So a key may be inserted or deleted twice. A newer
    load begins anew, because the log before it may lack changes. `loaded`: the seqno of the newest load.
    """
    found: dict[Row, Row] = {}
    for place, row, op in sorted(zip(order, rows, ops, strict=True), key=lambda one: one[0]):
        if place < (loaded, 0) or (place[0] == loaded and (place[1], op) != (0, "I")):
            continue
        if op == "D":
            found.pop(_key(row, key), None)
        else:
            found[_key(row, key)] = row
    return list(found.values())


def _key(row: Row, places: Sequence[int]) -> Row:
    return tuple(row[place] for place in places)
