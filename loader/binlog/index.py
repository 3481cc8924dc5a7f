"""The index of a range of log: its transactions, row events and statements, found by walking headers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import CLASSES, HEADER, event_name
from loader.binlog.registry import TableRegistry
from loader.errors import BinlogFormatError, LoaderError, UnsupportedError

Ints = NDArray[np.int64]

_DAMAGE = {
    w.BAD_CHECKSUM: "the checksum of an event is wrong: the log is damaged here",
    w.BAD_HEADER: "this is not an event: its length cannot be right",
    w.NO_TABLE_MAP: "a row event has no table map before it",
    w.NO_TRANSACTION: "a row event stands outside a transaction: the range does not start at a boundary",
    w.BAD_ORDER: "a transaction begins or ends where it cannot",
    w.MANY_MAPS: "a statement changes more tables than a statement can",
}
_TABLE_IDS = 1024


@dataclass(frozen=True)
class LogIndex:
    """What a range holds, in log order.

    Attributes:
        rows: int64 (row events, 5), fields walk.R_*.
        transactions: int64 (transactions, 4), fields walk.T_*.
        statements: int64 (statements, 3), fields walk.S_*; BEGIN, COMMIT and ROLLBACK are not among them.
        counts: events by type, and their bytes at 256, int64 (257); of the counted bytes only.
    """

    rows: Ints
    transactions: Ints
    statements: Ints
    counts: Ints


def _kept(rows: Ints, statements: Ints) -> tuple[list[Ints], list[Ints], list[Ints]]:
    """Lists that begin with the rows and statements of the open transaction."""
    return [rows], [np.zeros((0, 4), np.int64)], [statements]


class Walk:
    """Walks consecutive blocks of one file, named `file` in errors; events starting in the bytes `counted` count."""

    def __init__(self, registry: TableRegistry, file: str, start: int, checksum: int, counted: tuple[int, int]) -> None:
        self._registry = registry
        self._file = file
        self._checksum = checksum
        self._counted = counted
        self._state = np.zeros(10, np.int64)
        self._counts = np.zeros(257, np.int64)
        self._ids = np.zeros(_TABLE_IDS, np.int64)
        self._tables = np.zeros(_TABLE_IDS, np.int64)
        self._room = 0
        self._taken = 0
        self._kept = _kept(np.zeros((0, 5), np.int64), np.zeros((0, 3), np.int64))
        self.position = start
        """Offset of the next event."""

    def feed(self, block: NDArray[np.uint8]) -> int:
        """Walk a block that starts at `position`; the number of bytes used. A cut event at its end is not.

        Raises:
            BinlogFormatError: damage, by kind and position.
            UnsupportedError: an event that is not covered.
        """
        self._make_room(len(block) // HEADER + 1)
        r, s = self._registry, self._state
        s[[w.AT, w.ROW_COUNT, w.STATEMENTS]] = 0
        first = s[w.FIRST] = int(s[w.TRANSACTIONS])
        while True:
            status = w.walk(
                block, len(block), self.position, *self._counted, self._checksum, CLASSES, s,
                self._rows, self._transactions, self._statements, self._counts, self._ids, self._tables,
                r.slots, r.hashes, r.spans, r.known, r.numbers,
            )  # fmt: skip
            if status != w.NEW_TABLE:
                break
            self._register(block, int(s[w.AT]))
        if status != w.MORE:
            self._refuse(status, block, int(s[w.AT]))
        self._keep(first)
        used = int(s[w.AT])
        self.position += used
        return used

    @property
    def inside_transaction(self) -> bool:
        """Whether a transaction is open at `position`."""
        return bool(self._state[w.OPEN])

    def take(self) -> LogIndex:
        """The index of the transactions that closed since the last call; what is open stays for a later one."""
        rows, transactions, statements = (np.concatenate(kept) if len(kept) != 1 else kept[0] for kept in self._kept)
        until, first = int(self._state[w.TRANSACTIONS]), self._taken
        closed_rows = int(np.searchsorted(rows[:, w.R_TRANSACTION], until))
        closed_statements = int(np.searchsorted(statements[:, w.S_TRANSACTION], until))
        open_rows, open_statements = rows[closed_rows:].copy(), statements[closed_statements:].copy()
        rows, statements = rows[:closed_rows], statements[:closed_statements]
        rows[:, w.R_TRANSACTION] -= first
        statements[:, w.S_TRANSACTION] -= first
        counts = self._counts.copy()
        self._counts[:] = 0
        self._taken = until
        self._kept = _kept(open_rows, open_statements)
        return LogIndex(rows, transactions, statements, counts)

    def finish(self) -> LogIndex:
        """The same at the end.

        Raises:
            BinlogFormatError: a transaction is still open, so the range does not end at a boundary.
        """
        if self.inside_transaction:
            raise BinlogFormatError(
                "the range ends inside a transaction",
                hint="ranges start and end where transactions do",
                file=self._file,
                position=self.position,
                transaction_start=int(self._state[w.START]),
            )
        return self.take()

    def _make_room(self, events: int) -> None:
        if events > self._room:
            self._room = events
            self._rows = np.empty((events, 5), np.int64)
            self._transactions = np.empty((events, 4), np.int64)
            self._statements = np.empty((events, 3), np.int64)

    def _keep(self, first: int) -> None:
        for kept, array, count in zip(
            self._kept,
            (self._rows, self._transactions, self._statements),
            (self._state[w.ROW_COUNT], self._state[w.TRANSACTIONS] - first, self._state[w.STATEMENTS]),
            strict=True,
        ):
            if count:
                kept.append(array[:count].copy())

    def _register(self, block: NDArray[np.uint8], at: int) -> None:
        size = int.from_bytes(block[at + 9 : at + 13].tobytes(), "little")
        body = block[at + HEADER : at + size - self._checksum].tobytes()
        with placed(self._file, self.position + at):
            self._registry.add(body)

    def _refuse(self, status: int, block: NDArray[np.uint8], at: int) -> NoReturn:
        place: dict[str, Any] = {"file": self._file, "position": self.position + at}
        if status in {w.STOPPED, w.XA}:
            what = "an XA transaction" if status == w.XA else event_name(int(block[at + 4]))
            raise UnsupportedError(
                f"the log holds {what}, which this version does not cover",
                hint="nothing was applied; use a loader version that covers it, or load the tables again",
                **place,
            )
        raise BinlogFormatError(
            _DAMAGE[status],
            hint="compare with mysqlbinlog --verify-binlog-checksum; restore the file or load the tables again",
            **place,
        )


class placed:  # noqa: N801 - reads as a statement: with placed(...)
    """Adds file and position to a LoaderError that passes through."""

    def __init__(self, file: str, position: int) -> None:
        self._place = {"file": file, "position": str(position)}

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LoaderError):
            error.where = {**self._place, **error.where}
