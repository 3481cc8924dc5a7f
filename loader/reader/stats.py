"""Counts events and bytes by type and finds the largest transactions, without a Python object per event."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import event_name
from loader.binlog.table_registry import TableRegistry
from loader.model.position import Position
from loader.reader.files.log_files import ListedFile, LogFiles
from loader.reader.files.log_walk import BLOCK
from loader.reader.files.window import opened, windows
from loader.reader.kernel import tally
from loader.reader.seek.seek import position_in

_LARGEST = 10


@dataclass(frozen=True)
class Large:
    """A transaction and its size in bytes."""

    seqno: int
    start: Position
    end: Position
    bytes: int


@dataclass
class Tally:
    """Counts of a range of log.

    Attributes:
        events: number and bytes of events by type name. Events inside compressed events are not counted; each fragment
            counts.
        transactions: number of transactions.
        largest: the ten largest transactions, in descending order of size.
    """

    events: dict[str, tuple[int, int]] = field(default_factory=dict)
    transactions: int = 0
    largest: list[Large] = field(default_factory=list)

    def add(self, files: LogFiles, file: ListedFile, begin: int, end: int) -> None:
        """Count the bytes of a file from one boundary to another.

        Raises:
            LoaderError: from the walk.
        """
        counts = np.zeros((256, 2), np.int64)
        with opened(files, file, begin) as log:
            for window in windows(log, TableRegistry(lambda _: False), begin, end, closed=False):
                at, size = window.start, BLOCK
                while at < window.end:
                    block = log.block(at, min(size, window.end - at))
                    used = tally(block, len(block), counts)
                    size = BLOCK if used else 2 * size
                    at += used
                self._take(window.index.transactions, file)
        for kind in np.flatnonzero(counts[:, 0]):
            name = event_name(int(kind))
            number, size = self.events.get(name, (0, 0))
            self.events[name] = (number + int(counts[kind, 0]), size + int(counts[kind, 1]))

    def _take(self, transactions: NDArray[np.int64], file: ListedFile) -> None:
        self.transactions += len(transactions)
        sizes = transactions[:, w.T_END] - transactions[:, w.T_START]
        for row in np.argsort(-sizes, kind="stable")[:_LARGEST]:
            end = position_in(file, int(transactions[row, w.T_END]))
            start = position_in(file, int(transactions[row, w.T_START]))
            self.largest.append(Large(end.seqno(), start, end, int(sizes[row])))
        self.largest = sorted(self.largest, key=lambda one: (-one.bytes, one.seqno))[:_LARGEST]
