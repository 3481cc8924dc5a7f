"""Finds places in a log. The result is always a boundary, never inside an event or a transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, runtime_checkable

import numpy as np

from loader.binlog import walk as w
from loader.binlog.constants import HEADER
from loader.binlog.table_registry import TableRegistry
from loader.errors import GapError, UsageError
from loader.model.gtid import Gtid, GtidSet, MariadbGtid, MariadbGtidSet, MysqlGtidSet
from loader.model.position import Position
from loader.reader.decode import gtid_of
from loader.reader.files.file_header import read_head
from loader.reader.files.log_files import ListedFile, LogFiles
from loader.reader.files.log_walk import FIRST, LogBytes
from loader.reader.files.raw_events import header_at
from loader.reader.files.window import Window, opened, windows
from loader.reader.seek.position_spec import After, At, Begin, Place, Since
from loader.transport.base import NoPlace, ServerCannotTell

_SECOND = 1_000_000
_LONGEST_GTID = 1024


@runtime_checkable
class AsksServer(Protocol):
    """Log files of a server that can be queried."""

    def first_outside(self, gtids: GtidSet) -> Position:
        """Return the start of the first transaction outside the set, or the end of the log.

        Raises:
            ServerCannotTell: the server does not know it.
        """


class Locator:
    """Finds places in the current log."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files

    def find(self, place: Place) -> Position | None:
        """Return the position of a place; None for a time in the future.

        Raises:
            UsageError: a position is not a boundary (the error has the boundaries before and after it), or not in the
                log.
            GapError: a GTID set lacks transactions of files that are missing.
            BinlogFormatError, UnsupportedError: the log cannot be read up to the place.
        """
        listed = self._files.listed()
        if isinstance(place, At):
            return self._checked(place, listed)
        if isinstance(place, Begin):
            return position_in(listed[0], FIRST)
        if isinstance(place, After):
            return self._outside(place.gtids, listed)
        if isinstance(place, Since):
            return self._since(place.micros, listed)
        return self._end(listed)

    def segments(
        self, start: Position, stop: Position | None = None, transactions: int = 0
    ) -> list[tuple[ListedFile, int, int]]:
        """Return the log between two boundaries, or to its end, as (file, first byte, end byte) of each file.

        Args:
            start: a boundary.
            stop: a boundary; None for the end of the log.
            transactions: if above 0, stop after this number of transactions.
        """
        found = []
        for file in self._files.listed():
            if file.lognum < start.lognum or (stop and file.lognum > stop.lognum):
                continue
            begin = start.logpos if file.lognum == start.lognum else FIRST
            end = stop.logpos if stop and file.lognum == stop.lognum else file.size
            if transactions:
                end, transactions = self._counted(file, begin, end, transactions)
            found.append((file, begin, end))
            if transactions < 0:
                break
        return [segment for segment in found if segment[1] < segment[2]]

    def _counted(self, file: ListedFile, begin: int, end: int, count: int) -> tuple[int, int]:
        """Return the end of transaction number `count` and -1; or `end` and the number that is left."""
        with opened(self._files, file, begin) as log:
            for window in windows(log, TableRegistry(lambda _: False), begin, end, closed=False):
                ends = window.index.transactions[:, w.T_END]
                if len(ends) >= count:
                    return int(ends[count - 1]), -1
                count -= len(ends)
        return end, count

    def _end(self, listed: list[ListedFile]) -> Position:
        """Return the end of the last whole transaction."""
        end = FIRST
        for _, window in self._walked(listed[-1]):
            end = window.end
        return position_in(listed[-1], end)

    def _walked(self, file: ListedFile) -> Iterator[tuple[LogBytes, Window]]:
        with opened(self._files, file) as log:
            for window in windows(log, TableRegistry(lambda _: False), FIRST, file.size, closed=False):
                yield log, window

    def _checked(self, place: At, listed: list[ListedFile]) -> Position:
        named = [one for one in listed if (one.name == place.file if place.file else one.lognum == place.lognum)]
        if not named:
            wanted = place.file or f"a file with number {place.lognum}"
            why = f"it has {listed[0].name} to {listed[-1].name}"
            raise UsageError(f"the log does not have {wanted}", why=why, position=place.logpos)
        file = named[0]
        if place.logpos == FIRST:
            return position_in(file, FIRST)
        if place.logpos > file.size or place.logpos < FIRST:
            raise _refused(file, place.logpos, FIRST, file.size, "outside the file")
        end = FIRST
        for log, window in self._walked(file):
            end = window.end
            if place.logpos <= end:
                _check(log, window, file, place.logpos)
                return position_in(file, place.logpos)
        raise _refused(file, place.logpos, end, None, "after the last whole transaction")

    def _since(self, micros: int, listed: list[ListedFile]) -> Position | None:
        """Find a commit time. A file is skipped if the next file was started before that time.

        Clocks that were set back are not considered.
        """

        def hits(_: LogBytes, window: Window) -> int | None:
            late = np.flatnonzero(window.index.transactions[:, w.T_COMMITTED] >= micros)
            return int(window.index.transactions[late[0], w.T_START]) if len(late) else None

        def passed(file: ListedFile) -> bool:
            return (read_head(self._files, file).begun + 1) * _SECOND <= micros

        found = self._first(listed, passed, hits)
        if found is None and micros <= time.time_ns() // 1000:
            return self._end(listed)
        return found

    def _outside(self, gtids: GtidSet, listed: list[ListedFile]) -> Position:
        before = read_head(self._files, listed[0]).before
        missing = _missing(before, gtids) if before is not None else ""
        if missing:
            raise _gap(f"the set lacks {missing}", listed[0].name)
        return self._asked(gtids) or self._walked_outside(gtids, listed) or self._end(listed)

    def _walked_outside(self, gtids: GtidSet, listed: list[ListedFile]) -> Position | None:
        """Return the first transaction outside the set in the files, without asking a server."""

        def hits(log: LogBytes, window: Window) -> int | None:
            for start in window.index.transactions[:, w.T_START]:
                if _gtid_at(log, int(start), window.end) not in gtids:
                    return int(start)
            return None

        def passed(file: ListedFile) -> bool:
            before = read_head(self._files, file).before
            return before is not None and not _missing(before, gtids)

        if isinstance(gtids, MariadbGtidSet) and (absent := self._absent(gtids, listed)):
            raise _gap(f"the log does not have {absent}, so it may begin after it", listed[0].name)
        return self._first(listed, passed, hits)

    def _absent(self, gtids: MariadbGtidSet, listed: list[ListedFile]) -> str:
        """Return the newest GTIDs of domains of the set that are neither in the log nor in a GTID_LIST.

        A MariaDB set does not tell whether the transactions before the log's first one are in it.
        """
        wanted = dict(gtids.newest)
        heads = [read_head(self._files, file).before for file in listed]
        lists = [head.newest if isinstance(head, MariadbGtidSet) else {} for head in heads]
        for newest in lists:
            wanted = {domain: gtid for domain, gtid in wanted.items() if newest.get(domain) != gtid}
        for number, file in enumerate(listed):
            after = lists[number + 1] if number + 1 < len(listed) else None
            here = {gtid for gtid in wanted.values() if _may_have(gtid, lists[number], after)}
            if here:
                found = self._found(file, here)
                wanted = {domain: gtid for domain, gtid in wanted.items() if gtid not in found}
        return ",".join(map(str, wanted.values()))

    def _found(self, file: ListedFile, gtids: set[MariadbGtid]) -> set[Gtid | None]:
        """Return which of the GTIDs are in a file."""
        found: set[Gtid | None] = set()
        for log, window in self._walked(file):
            starts = window.index.transactions[:, w.T_START].tolist()
            found |= gtids.intersection(_gtid_at(log, start, window.end) for start in starts)
            if len(found) == len(gtids):
                break
        return found

    def _asked(self, gtids: GtidSet) -> Position | None:
        """Return the answer of a server, which makes walking its log unnecessary; None if it has none.

        Raises:
            GapError: a MariaDB server refuses the set. Its log tells less than the server knows.
        """
        try:
            # MariaDB is not asked with an empty set, which has the form of MySQL.
            return self._files.first_outside(gtids) if str(gtids) and isinstance(self._files, AsksServer) else None
        except NoPlace:
            return None
        except ServerCannotTell as error:
            if isinstance(gtids, MariadbGtidSet):
                raise _gap(error.why or error.what) from error
            return None

    def _first(
        self,
        listed: list[ListedFile],
        passed: Callable[[ListedFile], bool],
        hits: Callable[[LogBytes, Window], int | None],
    ) -> Position | None:
        """Return the first hit. A file is skipped if the next file is `passed`: no hit is before its start."""
        for number, file in enumerate(listed):
            if number + 1 < len(listed) and passed(listed[number + 1]):
                continue
            for log, window in self._walked(file):
                if (start := hits(log, window)) is not None:
                    return position_in(file, start)
        return None


def position_in(file: ListedFile, logpos: int) -> Position:
    """Return a position in a file with any name."""
    suffix = f".{file.lognum:06d}"
    return Position(file.name.removesuffix(suffix), file.lognum, logpos)


def _gtid_at(log: LogBytes, start: int, end: int) -> Gtid | None:
    block = log.block(start, min(_LONGEST_GTID, end - start))
    header = header_at(log.name, block, 0, start)
    return gtid_of(header, block[HEADER : header.size - log.form.checksum].tobytes())


def _may_have(gtid: MariadbGtid, before: Mapping[int, MariadbGtid], after: Mapping[int, MariadbGtid] | None) -> bool:
    """Return whether a file can have a transaction, by the GTID lists of the file and of the next file."""
    first, last = before.get(gtid.domain), gtid if after is None else after.get(gtid.domain)
    return (first is None or first.sequence < gtid.sequence) and last is not None and gtid.sequence <= last.sequence


def _gap(why: str, file: str = "") -> GapError:
    return GapError(
        "transactions outside the GTID set are in log files that are missing",
        why=why,
        hint="restore the older files from an archive, or load the tables again",
        **({"file": file} if file else {}),
    )


def _missing(before: GtidSet, gtids: GtidSet) -> str:
    """Return the GTIDs of `before` that `gtids` lacks, as text."""
    if isinstance(before, MysqlGtidSet) and isinstance(gtids, MysqlGtidSet):
        return str(before.without(gtids))
    if isinstance(before, MariadbGtidSet) and isinstance(gtids, MariadbGtidSet):
        return str(before.without(gtids))
    if not str(gtids):
        return str(before)
    raise UsageError(
        "the GTID set has the format of another kind of server",
        why=f"the log has sets like {before}",
        hint="write a set in this form",
        key=gtids,
    )


def _check(log: LogBytes, window: Window, file: ListedFile, wanted: int) -> None:
    starts, ends = window.index.transactions[:, w.T_START], window.index.transactions[:, w.T_END]
    inside = np.flatnonzero((starts < wanted) & (wanted < ends))
    if len(inside):
        raise _refused(file, wanted, int(starts[inside[0]]), int(ends[inside[0]]), "inside a transaction")
    before = ends[ends <= wanted]
    at = previous = max(window.start, int(before[-1])) if len(before) else window.start
    while at < wanted:
        previous = at
        at += header_at(log.name, log.block(at, HEADER), 0, at).size
    if at != wanted:
        raise _refused(file, wanted, previous, at, "inside an event")


def check_range(begin: Position, end: Position | None) -> None:
    """Check that a range does not end before its start.

    Raises:
        UsageError: it does.
    """
    if end is not None and (end.lognum, end.logpos) < (begin.lognum, begin.logpos):
        raise UsageError(
            "the range of the log ends before it begins",
            why=f"it begins at {begin} and ends at {end}",
            hint="exchange --from and --to",
        )


def _refused(file: ListedFile, wanted: int, before: int, after: int | None, why: str) -> UsageError:
    nearest = [str(before)] if after is None else [str(before), str(after)]
    return UsageError(
        f"a log cannot be read from or to {file.name}:{wanted}",
        why=f"it is {why}",
        hint=f"the nearest boundaries are {' and '.join(nearest)}",
        file=file.name,
        position=wanted,
        before=before,
        after=after,
    )
