"""The GTIDs of the transactions in a range of log, and the mark that identifies its end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import HEADER
from loader.binlog.events import gtids as g
from loader.binlog.format import log_identity
from loader.errors import BinlogFormatError
from loader.extract.range_result import Part
from loader.extract.windows import Window
from loader.model.gtid import Gtid, GtidSet, MariadbGtid, MysqlGtid, mariadb_set, mysql_set, source_of
from loader.reader.files.log_walk import FIRST, LogBytes
from loader.staging.documents import Mark

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_ROOM = 16  # sources at first
_MANY = 100_000  # runs, before adjacent runs are merged


class GtidTally:
    """The GTIDs in the windows of a range, and the newest transaction."""

    def __init__(self, mariadb: bool) -> None:
        self._mariadb = mariadb
        self._sources: Bytes = np.zeros(_ROOM * g.SOURCE, np.uint8)
        self._current = np.zeros((_ROOM, 3), np.int64)
        self._state = np.zeros(3, np.int64)
        self._ended: Ints = np.empty((0, 3), np.int64)
        self._new: list[Ints] = []
        self._last = 0

    def add(self, log: LogBytes, window: Window, first: int, end: int) -> None:
        """Add the transactions of a window that begin in the bytes [first, end).

        Raises:
            BinlogFormatError: a damaged GTID event.
        """
        starts = np.ascontiguousarray(window.index.transactions[:, w.T_START])
        starts = starts[slice(*np.searchsorted(starts, (first, end)))]
        if not len(starts):
            return
        self._last = int(starts[-1])
        before = int(np.searchsorted(starts, window.base))
        for start in starts[:before].tolist():  # at most one transaction, except for events that contain several
            self.read(log, *event_at(log, start), np.array([start]))
        if before < len(starts):
            self.read(log, window.block, window.base, starts[before:])

    def parts(self) -> tuple[Part, ...]:
        """Return all GTIDs found, in order."""
        runs = _joined([self._ended, *self._new, self._current[: self._state[g.KNOWN]]])
        found = ((self._name(source), first, last) for source, first, last in runs.tolist())
        if not self._mariadb:
            merged = mysql_set(found).ranges
            return tuple((name, first, last) for name in sorted(merged) for first, last in merged[name])
        newest: dict[str, int] = {}
        for name, _, last in found:
            newest[name] = max(last, newest.get(name, 0))
        return tuple((name, 1, newest[name]) for name in sorted(newest))

    def repeated(self) -> tuple[MariadbGtid, ...]:
        """Return, for each MariaDB domain and server, the newest sequence number that another server also used."""
        runs = _joined([self._ended, *self._new, self._current[: self._state[g.KNOWN]]])
        domains: dict[int, list[tuple[int, int, int]]] = {}
        for source, first, last in runs.tolist():
            domain, server = map(int, self._name(source).split("-"))
            domains.setdefault(domain, []).append((first, last, server))
        found: dict[tuple[int, int], int] = {}
        for domain, used in domains.items():
            newest, by = 0, -1
            for first, last, server in sorted(used):  # runs of one server do not overlap
                if first <= newest:
                    both = min(last, newest)
                    found |= {(domain, one): max(both, found.get((domain, one), 0)) for one in (server, by)}
                if last > newest:
                    newest, by = last, server
        return tuple(MariadbGtid(domain, server, number) for (domain, server), number in sorted(found.items()))

    def mark(self, log: LogBytes) -> Mark:
        """Return the mark of the position after the last transaction."""
        return mark_of(log, self._last)

    def read(self, log: LogBytes, block: Bytes, base: int, starts: Ints) -> None:
        """Add the transactions that begin at the offsets `starts`.

        Args:
            log: the log file.
            block: bytes that hold their GTID events.
            base: offset of the block in the file.
            starts: offsets in the file.

        Raises:
            BinlogFormatError: a damaged GTID event.
        """
        runs = np.empty((len(starts), 3), np.int64)
        self._state[[g.NEXT, g.RUNS]] = 0
        while status := g.gtids(block, len(block), base, starts, self._sources, self._current, runs, self._state):
            if status == g.CUT:
                at = int(starts[self._state[g.NEXT]])
                raise BinlogFormatError("a GTID event is damaged", file=log.name, position=at)
            self._sources = np.concatenate([self._sources, np.zeros_like(self._sources)])
            self._current = np.concatenate([self._current, np.zeros_like(self._current)])
        if ended := int(self._state[g.RUNS]):
            self._new.append(runs[:ended].copy())
            if sum(map(len, self._new)) > _MANY + len(self._ended):
                self._ended, self._new = _joined([self._ended, *self._new]), []

    def _name(self, number: int) -> str:
        data = self._sources[number * g.SOURCE : (number + 1) * g.SOURCE].tobytes()
        if self._mariadb:
            return f"{int.from_bytes(data[:4], 'little')}-{int.from_bytes(data[4:8], 'little')}"
        return source_of(data[:16], data[g.TAG : g.TAG + data[g.TAG - 1]].decode())


def _joined(runs: Sequence[Ints]) -> Ints:
    """Return the same GTIDs in as few runs as possible, in order.

    The log of a replica with parallel appliers has a run for almost every transaction.
    """
    every = np.concatenate(runs)
    found = []
    for source in np.unique(every[:, 0]):
        mine = every[every[:, 0] == source]
        mine = mine[np.argsort(mine[:, 1], kind="stable")]
        lasts = np.maximum.accumulate(mine[:, 2])
        begins = np.flatnonzero(np.append(True, mine[1:, 1] - 1 > lasts[:-1]))
        ends = np.append(begins[1:], len(mine)) - 1
        found.append(np.column_stack((mine[begins, 0], mine[begins, 1], lasts[ends])))
    return np.concatenate([every[:0], *found])


def gtid_at(log: LogBytes, start: int) -> Gtid | None:
    """Return the GTID of the transaction that begins at an offset, or None if it has none.

    Raises:
        BinlogFormatError: a damaged GTID event.
    """
    tally = GtidTally(log.form.mariadb)
    tally.read(log, *event_at(log, start), np.array([start]))
    for name, _, number in tally.parts():
        if log.form.mariadb:
            domain, server = name.split("-")
            return MariadbGtid(int(domain), int(server), number)
        return MysqlGtid(name, number)
    return None


def event_at(log: LogBytes, start: int) -> tuple[Bytes, int]:
    """Return the event at an offset, and the offset."""
    size = int.from_bytes(log.block(start, HEADER)[9:13].tobytes(), "little")
    return log.block(start, size), start


def mark_of(log: LogBytes, last: int) -> Mark:
    """Return the mark of a position after the transaction that begins at `last` (0: after no transaction)."""
    identity = b"".join(log_identity(event_at(log, FIRST)[0].tobytes()))
    event = event_at(log, last)[0].tobytes() if last else b""
    return Mark(log=_digest(identity), last=last, event=_digest(event) if last else "")


def gtid_set(parts: Iterable[Part], *, mariadb: bool) -> GtidSet:
    """Return the GTID set of these parts."""
    if not mariadb:
        return mysql_set(parts)
    found = ((name.split("-"), last) for name, _, last in parts)
    return mariadb_set(MariadbGtid(int(domain), int(server), last) for (domain, server), last in found)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
