"""The index of a range of log: its transactions, row events and statements, found by walking headers only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import CLASSES, HEADER, event_name
from loader.binlog.table_registry import TableRegistry
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, LoaderError, UnsupportedError

Ints = NDArray[np.int64]

_DAMAGE = {
    w.BAD_CHECKSUM: "the checksum of an event is wrong: the log is damaged here",
    w.BAD_HEADER: "this is not an event: its length cannot be right",
    w.NO_TABLE_MAP: "a row event has no table map before it",
    w.NO_TRANSACTION: "a row event stands outside a transaction: the range does not start at a boundary",
    w.BAD_ORDER: "a transaction begins or ends where it cannot",
    w.NESTED: "a compressed event holds another, or one in fragments",
    w.MANY_MAPS: "a statement has more table maps than a statement can",
}
_TABLE_IDS = 1024
_MOST_TABLE_IDS = 1024 * 1024
"""Table maps of a statement: servers log those of all tables that LOCK TABLES ... WRITE names, changed or not."""

LONG = 500_000
"""Row events of a transaction that are kept at most: 32 MB."""


@dataclass(frozen=True)
class LogIndex:
    """What a range holds, in log order.

    Attributes:
        rows: int64 (row events, 8), fields walk.R_*.
        transactions: int64 (transactions, 6), fields walk.T_*.
        statements: int64 (statements, 4), fields walk.S_*; BEGIN, COMMIT and ROLLBACK are not among them.
        counts: events by type, and their bytes at 256, int64 (257); of the counted bytes only.
        bodies: statements that were compressed, as whole events.
        long: which of the transactions have so many row events that they are not in `rows` but must be walked again.
    """

    rows: Ints
    transactions: Ints
    statements: Ints
    counts: Ints
    bodies: list[bytes]
    long: tuple[int, ...] = ()

    def between(self, first: int, end: int) -> LogIndex:
        """Of its row events those of the transactions from `first` to before `end`, and nothing else to account for."""
        start, stop = np.searchsorted(self.rows[:, w.R_TRANSACTION], (first, end))
        return rows_index(self.rows[start:stop], self.transactions)


def rows_index(rows: Ints, transactions: Ints) -> LogIndex:
    """An index of row events and their transactions only."""
    return LogIndex(rows, transactions, np.zeros((0, w.WIDTHS[2]), np.int64), np.zeros(257, np.int64), [])


@dataclass(frozen=True)
class OuterEvent:
    """An event that holds others, or is the first fragment of one: its header and place in the file."""

    header: bytes
    offset: int

    @property
    def kind(self) -> int:
        """Its type."""
        return self.header[4]

    @property
    def end(self) -> int:
        """Where it ends in the file."""
        return self.offset + int.from_bytes(self.header[9:13], "little")


@dataclass(frozen=True)
class ExpandedEvent:
    """What is in an outer event, or in all the fragments of which it is the first.

    Attributes:
        pieces: the events in it, each with its header and without checksum, in pieces of bytes.
        end: where it, or the last fragment, ends in the file.
        events: how many events of the file it is.
        lead: bytes from its place to that of the first event in it, as row offsets count.
        size: bytes that it takes in the file, as row offsets count: those of the event before it was in fragments.
    """

    pieces: Iterable[bytes]
    end: int
    events: int
    lead: int
    size: int


def _kept(rows: Ints, statements: Ints) -> tuple[list[Ints], list[Ints], list[Ints]]:
    """Lists that begin with the rows and statements of the open transaction."""
    return [rows], [np.zeros((0, w.WIDTHS[1]), np.int64)], [statements]


class Walk:
    """Walks consecutive blocks of one file, named `file` in errors; events starting in the bytes `counted` count.

    Of a transaction of more than LONG row events none are kept, unless `keep`.
    """

    def __init__(
        self,
        registry: TableRegistry,
        file: str,
        start: int,
        checksum: int,
        counted: tuple[int, int],
        *,
        keep: bool = False,
    ) -> None:
        self._registry = registry
        self._file = file
        self._checksum = checksum
        self._counted = counted
        self._state = np.zeros(w.STATE, np.int64)
        self._counts = np.zeros(257, np.int64)
        self._ids = np.zeros(_TABLE_IDS, np.int64)
        self._tables = np.zeros(_TABLE_IDS, np.int64)
        self._room = 0
        self._taken = 0
        self._bodies: list[bytes] = []
        self._keep_all = keep
        self._long: list[int] = []
        self._kept = _kept(np.zeros((0, w.WIDTHS[0]), np.int64), np.zeros((0, w.WIDTHS[2]), np.int64))
        self.position = start
        """Offset of the next event."""
        self.outer: OuterEvent | None = None
        """The event at `position`, when it holds others and `expand` must be called before more is fed."""

    def feed(self, block: NDArray[np.uint8]) -> int:
        """Walk a block that starts at `position`; the number of bytes used. A cut event at its end is not.

        Raises:
            BinlogFormatError: damage, by kind and position.
            UnsupportedError: an event that is not covered.
        """
        status = self._walk(block, self.position, self._counted, self._checksum)
        used = int(self._state[w.AT])
        self.position += used
        if status == w.OUTER:
            self.outer = OuterEvent(block[used : used + HEADER].tobytes(), self.position)
        elif status != w.MORE:
            self._refuse(status, block[used:])
        self._keep()
        return used

    def expand(self, expanded: ExpandedEvent) -> None:
        """Walk the events in `outer` and go on behind it.

        Raises:
            BinlogFormatError, UnsupportedError: see `feed`; and what its pieces raise.
        """
        for _ in self.expand_steps(expanded):
            pass

    def expand_steps(self, expanded: ExpandedEvent) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """The same, giving after each step the bytes that it walked, and their place in the expanded bytes."""
        outer = self.outer
        if outer is None:
            raise ValueError("no event is waiting to be expanded")
        mine = self._counted[0] <= outer.offset < self._counted[1]
        bytes_before = int(self._counts[256])
        rest, base = b"", 0
        with error_place(self._file, outer.offset):
            for piece in expanded.pieces:
                data = np.frombuffer(bytearray(rest + piece), np.uint8)
                used = self._walk_inner(data, base, outer, expanded, mine)
                yield data[:used], base
                rest, base = data[used:].tobytes(), base + used
        if rest:
            self._refuse(w.BAD_HEADER, np.frombuffer(rest, np.uint8))
        taken, size = expanded.end - outer.offset, expanded.size
        if mine:
            self._counts[outer.kind] += expanded.events
            self._counts[256] = bytes_before + taken
        self._state[w.GROWN] += max(size, expanded.lead + base) - taken
        self.position, self.outer = expanded.end, None

    def _walk_inner(
        self, data: NDArray[np.uint8], base: int, outer: OuterEvent, expanded: ExpandedEvent, mine: bool
    ) -> int:
        """Walk a piece of expanded bytes, `base` bytes from their start; how much of it was used."""
        s = self._state
        was_open = bool(s[w.OPEN])
        lead = outer.offset + expanded.lead + int(s[w.GROWN])
        status = self._walk(data, base, (0, 1 << 62) if mine else (0, 0), 0)
        used = int(s[w.AT])
        if status != w.MORE:
            self._refuse(w.NESTED if status == w.OUTER else status, data[used:])
        rows = self._rows[: s[w.ROW_COUNT]]
        rows[:, w.R_EVENT], rows[:, w.R_LEAD], rows[:, w.R_INNER] = outer.offset, lead, 1
        transactions = self._transactions[: s[w.TRANSACTIONS] - s[w.FIRST]]
        transactions[:, w.T_END] = expanded.end
        if not was_open:
            transactions[:1, w.T_START] = outer.offset
            s[w.START] = outer.offset
        for statement in self._statements[: s[w.STATEMENTS]]:
            start = int(statement[w.S_OFFSET]) - base
            statement[w.S_BODY] = len(self._bodies)
            self._bodies.append(data[start : start + int(statement[w.S_SIZE])].tobytes())
            statement[w.S_OFFSET] = outer.offset
        self._keep()
        return used

    def _walk(self, block: NDArray[np.uint8], base: int, counted: tuple[int, int], checksum: int) -> int:
        """Run the kernel over a block, registering table maps as they come; its last status."""
        self._make_room(len(block) // HEADER + 1)
        r, s = self._registry, self._state
        s[[w.AT, w.ROW_COUNT, w.STATEMENTS]] = 0
        s[w.FIRST] = s[w.TRANSACTIONS]
        while True:
            status = w.walk(
                block, len(block), base, *counted, checksum, CLASSES, s,
                self._rows, self._transactions, self._statements, self._counts, self._ids, self._tables,
                r.slots, r.hashes, r.spans, r.map_bytes, r.numbers,
            )  # fmt: skip
            if status == w.NEW_TABLE:
                self._register(block, int(s[w.AT]), checksum)
            elif status == w.MANY_MAPS and len(self._ids) < _MOST_TABLE_IDS:
                more = np.zeros(len(self._ids), np.int64)
                self._ids, self._tables = (np.concatenate((old, more)) for old in (self._ids, self._tables))
            else:
                return status

    @property
    def inside_transaction(self) -> bool:
        """Whether a transaction is open at `position`."""
        return bool(self._state[w.OPEN])

    @property
    def open_start(self) -> int:
        """Where the transaction begins that is open at `position`; `position` when none is."""
        return int(self._state[w.START]) if self.inside_transaction else self.position

    def take(self) -> LogIndex:
        """The index of the transactions that closed since the last call; what is open stays for a later one."""
        rows, transactions, statements = (np.concatenate(kept) if len(kept) != 1 else kept[0] for kept in self._kept)
        until, first = int(self._state[w.TRANSACTIONS]), self._taken
        closed_rows = int(np.searchsorted(rows[:, w.R_TRANSACTION], until))
        closed_statements = int(np.searchsorted(statements[:, w.S_TRANSACTION], until))
        open_rows, open_statements = rows[closed_rows:].copy(), statements[closed_statements:].copy()
        rows, statements = rows[:closed_rows], statements[:closed_statements]
        long = [number for number in self._long if number < until]
        if long:
            rows = rows[~np.isin(rows[:, w.R_TRANSACTION], long)]
        rows[:, w.R_TRANSACTION] -= first
        statements[:, w.S_TRANSACTION] -= first
        counts = self._counts.copy()
        self._counts[:] = 0
        self._taken = until
        self._kept = _kept(open_rows, open_statements)
        self._long = self._long[len(long) :]
        bodies = self._bodies
        if not len(open_statements):
            self._bodies = []
        return LogIndex(rows, transactions, statements, counts, bodies, tuple(number - first for number in long))

    def drain(self) -> Ints:
        """The row events met since the last call, of transactions that are closed or not."""
        rows = np.concatenate(self._kept[0])
        self._kept = _kept(rows[:0], np.zeros((0, w.WIDTHS[2]), np.int64))
        return rows

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
            self._rows, self._transactions, self._statements = (
                np.empty((events, width), np.int64) for width in w.WIDTHS
            )

    def _keep(self) -> None:
        s = self._state
        for kept, array, count in zip(
            self._kept,
            (self._rows, self._transactions, self._statements),
            (s[w.ROW_COUNT], s[w.TRANSACTIONS] - s[w.FIRST], s[w.STATEMENTS]),
            strict=True,
        ):
            if count:
                kept.append(array[:count].copy())
        if not self._keep_all and sum(map(len, self._kept[0])) > LONG:
            self._shed()

    def _shed(self) -> None:
        """Let go of the row events of the open transaction when they are too many."""
        rows = np.concatenate(self._kept[0])
        number = int(self._state[w.TRANSACTIONS])
        closed = int(np.searchsorted(rows[:, w.R_TRANSACTION], number))
        if len(rows) - closed > LONG // 2:
            rows = rows[:closed]
            if number not in self._long:
                self._long.append(number)
        self._kept[0][:] = [rows]

    def _register(self, block: NDArray[np.uint8], at: int, checksum: int) -> None:
        size = int.from_bytes(block[at + 9 : at + 13].tobytes(), "little")
        body = block[at + HEADER : at + size - checksum].tobytes()
        with error_place(self._file, self.position + (0 if self.outer else at)):
            self._registry.add(body)

    def _refuse(self, status: int, event: NDArray[np.uint8]) -> NoReturn:
        """Raise what a status of the kernel means at `position`, with the bytes from the event on."""
        place: dict[str, Any] = {"file": self._file, "position": self.position}
        if status in {w.STOPPED, w.XA}:
            what = "a statement about an XA transaction" if status == w.XA else event_name(int(event[4]))
            raise UnsupportedError(
                f"the log holds {what}, which this version does not cover",
                hint=f"nothing was applied; use a loader version that covers it, or {LOAD_ALL_AGAIN}",
                **place,
            )
        raise BinlogFormatError(
            _DAMAGE[status],
            hint=f"compare with mysqlbinlog --verify-binlog-checksum; restore the file or {LOAD_ALL_AGAIN}",
            **place,
        )


class error_place:  # noqa: N801 - reads as a statement: with error_place(...)
    """Adds file and position, and what more tells the place, to a LoaderError that passes through."""

    def __init__(self, file: str, position: int, **more: object) -> None:
        self._place = {"file": file, "position": str(position), **{name: str(value) for name, value in more.items()}}

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LoaderError):
            error.where = {**self._place, **error.where}
