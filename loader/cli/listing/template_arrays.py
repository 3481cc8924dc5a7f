"""The arrays of templates that the kernel reads."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from loader.cli.listing.event_templates import Step
from loader.cli.listing.row_formats import RowFormat

_MOST = 8192
"""Templates in memory. At one more, all are dropped."""

_SLOTS = 4 * _MOST
_Number = TypeVar("_Number", np.int64, np.uint8)


class Pile(Generic[_Number]):
    """An array that grows at its end.

    Attributes:
        data: the array, with room behind its end.
        end: number of items.
    """

    def __init__(self, kind: type[_Number], *shape: int) -> None:
        self.data: NDArray[_Number] = np.zeros((64, *shape), kind)
        self.end = 0

    def add(self, items: NDArray[_Number]) -> None:
        """Append items."""
        while self.end + len(items) + 8 > len(self.data):
            self.data = np.concatenate([self.data, np.zeros_like(self.data)])
        self.data[self.end : self.end + len(items)] = items
        self.end += len(items)


class EventTemplates:
    """The arrays of the templates, and of the tables whose rows are listed.

    Attributes are named as the arguments of loader.binlog.listing.events.list_events.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all."""
        self._count = 0
        self.columns, self.names = Pile(np.int64, 4), Pile(np.uint8)
        self.ops, self.literals, self.keys = Pile(np.int64, 3), Pile(np.uint8), Pile(np.uint8)
        self.starts, self.key_spans = np.zeros(_MOST + 1, np.int64), np.zeros(_MOST + 1, np.int64)
        self.tables = np.full((64, 2), -1, np.int64)
        self.slots = np.full(_SLOTS, -1, np.int64)

    def add_table(self, program: int, rows: RowFormat) -> None:
        """Add the columns of a program, unless it has them."""
        if program >= len(self.tables):
            more = np.full((program + 1, 2), -1, np.int64)
            self.tables = np.concatenate([self.tables, more])
        if self.tables[program, 0] >= 0:
            return
        columns = rows.columns.copy()
        columns[:, 1:] += self.names.end
        self.tables[program] = self.columns.end, self.columns.end + len(columns)
        self.columns.add(columns)
        self.names.add(rows.names[:-8])

    def add(self, key: NDArray[np.uint8], digest: int, steps: list[Step]) -> None:
        """Add the template of a key with that hash."""
        number = self._count
        for slot, text in steps:
            start = self.literals.end
            self.literals.add(np.frombuffer(text, np.uint8))
            self.ops.add(np.array([[slot, start, self.literals.end]], np.int64))
        self.keys.add(key)
        self.starts[number + 1], self.key_spans[number + 1] = self.ops.end, self.keys.end
        place = digest & (_SLOTS - 1)
        while self.slots[place] >= 0:
            place = (place + 1) & (_SLOTS - 1)
        self.slots[place] = number
        self._count += 1

    @property
    def is_full(self) -> bool:
        """Whether no template can be added."""
        return self._count == _MOST
