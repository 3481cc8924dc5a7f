"""Do the changes of a history again, and find changes that are missing or there twice."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Row = tuple[Any, ...]


class Change(NamedTuple):
    """One row of a history; `row` has the columns of the source."""

    seqno: int
    offset: int
    op: str
    row: Row


@dataclass(frozen=True)
class Beginning:
    """From where on a history has every change of the rows that the server has.

    Attributes:
        loaded: the seqno of the newest load. The log before it may lack changes.
        exact: the seqno up to which that load may have read rows that were changed after its position.
        emptied: the seqno of the newest statement that left the table without rows, such as TRUNCATE.
    """

    loaded: int = 0
    exact: int = 0
    emptied: int = 0

    def counts(self, change: Change) -> bool:
        """Whether a change concerns rows that were not loaded anew or removed as a whole since then."""
        if self.emptied > self.loaded:
            return change.seqno > self.emptied
        return change.seqno > self.loaded or (change.seqno, change.offset, change.op) == (self.loaded, 0, "I")

    def is_strict(self, change: Change) -> bool:
        """Whether every change before this one is known to be in the history, once."""
        return self.emptied > self.loaded or change.seqno > self.exact


def replayed(
    changes: Iterable[Change],
    key: Sequence[int],
    beginning: Beginning,
    earlier: Iterable[tuple[int, Sequence[int]]] = (),
) -> tuple[list[Row], list[str]]:
    """Return the rows that are left when every change is done again in the order of the log, and what is wrong.

    Args:
        changes: the rows of the history.
        key: the places of the columns of the key in a row.
        beginning: where the history begins.
        earlier: the keys before, each with the seqno of the statement that changed it, in their order.
    """
    found: dict[Row, Row] = {}
    wrong = list[str]()
    keys = [*earlier, (sys.maxsize, key)]
    for change in sorted(filter(beginning.counts, changes), key=lambda one: one[:2]):
        while change.seqno > keys[0][0]:
            found = {_key(row, keys[1][1]): row for row in found.values()}
            keys = keys[1:]
        at = _key(change.row, keys[0][1])
        before = found.get(at)
        if beginning.is_strict(change) and (problem := _problem(change, before)):
            wrong.append(f"{problem}: {change}, after {before}")
        if change.op == "D":
            found.pop(at, None)
        else:
            found[at] = change.row
    return list(found.values()), wrong


def _key(row: Row, places: Sequence[int]) -> Row:
    return tuple(row[place] for place in places)


def _problem(change: Change, before: Row | None) -> str:
    if change.op == "I":
        return "" if before is None else "inserted although it is there"
    if before is None:
        return "changed although it is not there"
    return "deleted as another row" if change.op == "D" and change.row != before else ""
