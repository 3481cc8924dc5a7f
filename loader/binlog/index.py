"""The index of a range of the log: its transactions, row events and statements. Only event headers are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import CLASSES, HEADER, INCIDENT, XID, event_name
from loader.binlog.table_registry import TableRegistry
from loader.errors import LOAD_ALL_AGAIN, NEWER_LOADER, BinlogFormatError, LoaderError, UnsupportedError

Ints = NDArray[np.int64]

_DAMAGE = {
    w.BAD_CHECKSUM: "the checksum of an event is wrong: the log is damaged here",
    w.BAD_HEADER: "the bytes at this position are not an event: the length in its header is impossible",
    w.NO_TABLE_MAP: "a row event has no table map before it",
    w.NO_TRANSACTION: "a row event is outside a transaction: the range does not start at a transaction boundary",
    w.BAD_ORDER: "a transaction begins inside another one, or ends without a beginning",
    w.NESTED: "a compressed event holds another compressed event, or a fragment of an event",
    w.MANY_MAPS: "a statement has more table maps than a server can write",
}
_TABLE_IDS = 1024
_MOST_TABLE_IDS = 1024 * 1024
"""Limit of table maps per statement. Servers log a map of every table in LOCK TABLES ... WRITE, changed or not."""

LONG = 500_000
"""The index keeps at most this many row events of one transaction (32 MB)."""


@dataclass(frozen=True)
class LogIndex:
    """The contents of a range of the log, in log order.

    Attributes:
        rows: int64 (row events, 9), fields walk.R_*.
        transactions: int64 (transactions, 6), fields walk.T_*.
        statements: int64 (statements, 5), fields walk.S_*; BEGIN, COMMIT and ROLLBACK are not among them.
        counts: int64 (257): number of events by type, and at 256 their bytes; only of events in the counted bytes.
        bodies: statements that were compressed, as whole events.
        long: numbers of the transactions with more than LONG row events. Their row events are not in `rows`: walk them
            again with `keep`.
    """

    rows: Ints
    transactions: Ints
    statements: Ints
    counts: Ints
    bodies: list[bytes]
    long: tuple[int, ...] = ()

    def between(self, first: int, end: int) -> LogIndex:
        """Return an index of only the row events of transactions `first` to `end` - 1, with all counts 0."""
        start, stop = np.searchsorted(self.rows[:, w.R_TRANSACTION], (first, end))
        return rows_index(self.rows[start:stop], self.transactions)


def rows_index(rows: Ints, transactions: Ints) -> LogIndex:
    """Return an index of only these row events and their transactions."""
    return LogIndex(rows, transactions, np.zeros((0, w.WIDTHS[2]), np.int64), np.zeros(257, np.int64), [])


@dataclass(frozen=True)
class OuterEvent:
    """An event that holds other events, or the first fragment of an event: its header and its offset in the file."""

    header: bytes
    offset: int

    @property
    def kind(self) -> int:
        """Return the event type."""
        return self.header[4]

    @property
    def end(self) -> int:
        """Return the offset in the file behind the event."""
        return self.offset + int.from_bytes(self.header[9:13], "little")


@dataclass(frozen=True)
class ExpandedEvent:
    """The events inside an outer event, or the event that a series of fragments makes.

    Attributes:
        pieces: bytes of the inner events, in pieces. Each event has its header and no checksum.
        end: offset in the file behind the outer event, or behind the last fragment.
        events: number of events in the file: 1, or the number of fragments.
        lead: distance in row offsets from the outer event to the first inner event, in bytes.
        size: bytes of the outer event in row offsets. For fragments: the bytes of the event before it was divided.
    """

    pieces: Iterable[bytes]
    end: int
    events: int
    lead: int
    size: int


def _kept(rows: Ints, statements: Ints) -> tuple[list[Ints], list[Ints], list[Ints]]:
    """Return the lists of rows, transactions and statements, with those of the open transaction as the first items."""
    return [rows], [np.zeros((0, w.WIDTHS[1]), np.int64)], [statements]


class Walk:
    """Walks consecutive blocks of one log file.

    Args:
        registry: where table maps are registered.
        file: name of the log file in errors.
        start: offset of the first event.
        checksum: bytes of checksum at the end of each event, 4 or 0.
        counted: first and end offset of the bytes whose events count in `LogIndex.counts`.
        keep: keep the row events of transactions with more than LONG of them as well.
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
        """Offset in the file of the next event."""
        self.outer: OuterEvent | None = None
        """The event at `position` if it holds other events. Call `expand` before the next `feed` then; else None."""

    def feed(self, block: NDArray[np.uint8]) -> int:
        """Walk a block that starts at `position`; return the number of bytes used.

        A truncated event at the end of the block is not used: feed it again with the rest of its bytes.

        Raises:
            BinlogFormatError: the log is damaged.
            UnsupportedError: the event type is not supported.
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
        """Walk the events in `outer` and continue behind it.

        Raises:
            BinlogFormatError, UnsupportedError: see `feed`. Errors of `expanded.pieces` pass through with a position.
        """
        for _ in self.expand_steps(expanded):
            pass

    def expand_steps(self, expanded: ExpandedEvent) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Walk the events in `outer` step by step.

        Yields:
            The bytes that the step walked, and their offset in the expanded bytes.

        Raises:
            BinlogFormatError, UnsupportedError: see `expand`.
        """
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
        """Walk a piece of expanded bytes that starts at their byte `base`; return the number of bytes used."""
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
        """Run the kernel over a block, and register the table maps in it; return the kernel's last status."""
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
        """Return whether a transaction is open at `position`."""
        return bool(self._state[w.OPEN])

    @property
    def open_start(self) -> int:
        """Return the offset where the open transaction begins; `position` if no transaction is open."""
        return int(self._state[w.START]) if self.inside_transaction else self.position

    def take(self) -> LogIndex:
        """Return the index of the transactions that closed since the last call; the open one stays for later."""
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

    def take_open(self) -> LogIndex:
        """Return the index of the transaction that is open at `position`, as ending there with outcome walk.CUT_OFF.

        To be called after `take`.
        """
        s = self._state
        row = [s[w.START], self.position, s[w.COMMITTED], w.CUT_OFF, s[w.SERVER], s[w.MARKED]]
        rows = self.drain().copy()
        rows[:, w.R_TRANSACTION] = 0
        return rows_index(rows, np.array([row], np.int64))

    def drain(self) -> Ints:
        """Return the row events since the last call, also those of an open transaction."""
        rows = np.concatenate(self._kept[0])
        self._kept = _kept(rows[:0], np.zeros((0, w.WIDTHS[2]), np.int64))
        return rows

    def finish(self) -> LogIndex:
        """Return the last index of the range; see `take`.

        Raises:
            BinlogFormatError: a transaction is still open, so the range does not end at a transaction boundary.
        """
        if self.inside_transaction:
            raise BinlogFormatError(
                "the range ends inside a transaction",
                hint="start and stop at transaction boundaries; `loader inspect` lists them",
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
            self._forget_open_rows()

    def _forget_open_rows(self) -> None:
        """Forget the row events of the open transaction if there are too many."""
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
        """Raise the error of a kernel status at `position`. `event`: the bytes from the event on."""
        place: dict[str, Any] = {"file": self._file, "position": self.position}
        if status == w.STOPPED and int(event[4]) == INCIDENT:
            raise UnsupportedError(
                f"the log contains {event_name(INCIDENT)}, which means that the server could not log some changes",
                why="for example because they exceeded max_binlog_stmt_cache_size",
                hint=LOAD_ALL_AGAIN,
                **place,
            )
        if status in {w.STOPPED, w.XA}:
            what = "an unknown XA statement" if status == w.XA else event_name(int(event[4]))
            raise UnsupportedError(
                f"the log contains {what}, which this version of the loader does not support",
                hint=NEWER_LOADER,
                **place,
            )
        without_begin = status == w.BAD_ORDER and not self.inside_transaction and int(event[4]) == XID
        raise BinlogFormatError(
            "a commit (XID) has no BEGIN before it" if without_begin else _DAMAGE[status],
            why="the log is damaged before it, or its server (MySQL 5.1.22) writes none for one statement"
            if without_begin
            else "",
            **place,
        )


class error_place:  # noqa: N801 - used as a statement: with error_place(...)
    """Add file, position and other details to the `where` of a LoaderError that passes through."""

    def __init__(self, file: str, position: int, **more: object) -> None:
        self._place = {"file": file, "position": str(position), **{name: str(value) for name, value in more.items()}}

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LoaderError):
            error.where = {**self._place, **error.where}
