"""How far a server's log contains transactions that were read from another server, and which others are among them.

A replica logs transactions in another order than its source if its appliers do not preserve the order, or if they
belong to several replication domains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loader.binlog import walk as w
from loader.binlog.table_registry import TableRegistry
from loader.extract.gtids.marks import GtidTally, gtid_at, gtid_set
from loader.extract.log_ranges import whole_segment
from loader.extract.windows import Window, ignore_unfinished, read_windows
from loader.model.gtid import (
    Gtid,
    GtidSet,
    MariadbGtid,
    MysqlGtid,
    MysqlGtidSet,
    mariadb_set,
    missing_gtids,
    mysql_set,
    union_gtids,
)
from loader.model.position import Interval, Position
from loader.reader.files.log_walk import LogBytes, log_bytes
from loader.transport.base import AnonymousRefused, Transport
from loader.transport.segments import segments_before


@dataclass(frozen=True)
class Interleaving:
    """Where the last transaction of a set ends, and which other transactions precede it.

    Attributes:
        until: the end of the last transaction that was read before, from another server.
        others: the GTID set of unread transactions before `until`.
    """

    until: Position
    others: str


def find_interleaving(transport: Transport, log: Interval, before: str, known: str) -> Interleaving:
    """Walk a server's log until every transaction of a set was seen.

    Args:
        transport: reads the log.
        log: from the first transaction outside the set to the end of the log.
        before: the GTID set of everything before `log`.
        known: the set.

    Raises:
        LoaderError: from transport or codec.
    """
    seen, others = before, ""
    for found, closer in _steps(transport, log):
        after = str(union_gtids(seen, found))
        if not missing_gtids(known, after):
            for gtid, end in closer:
                one = _alone(gtid)
                if missing_gtids(str(one), known):
                    others = str(union_gtids(others, one))
                seen = str(union_gtids(seen, one))
                if not missing_gtids(known, seen):
                    return Interleaving(end, others)
        seen, others = after, _with(others, found, known)
    return Interleaving(log.stop, others)


def find_repeated(transport: Transport, log: Interval) -> tuple[MariadbGtid, ...]:
    """Return the GTIDs of a MariaDB log whose sequence number several servers used in one domain.

    Without gtid_strict_mode, a replica that somebody writes to uses a number that its primary also uses later.

    Args:
        transport: reads the log.
        log: of a MariaDB server.

    Returns:
        The newest such GTID of each domain and server.

    Raises:
        LoaderError: from transport or codec.
    """
    tally = GtidTally(mariadb=True)
    for data, window, begin, end in _windows(transport, log):
        tally.add(data, window, begin, end)
    return tally.repeated()


def find_anonymous_before(transport: Transport, position: Position) -> str:
    """Return where a transaction without a GTID may follow all others before a position of a MySQL log; empty if none.

    A server searches by GTIDs only. So it passes over transactions without a GTID at the end of a file, whether they
    were read or not (seen on MySQL 9.7, after `gtid_mode` was switched off and on again). While `gtid_mode` is ON, it
    sends no file that has one.

    Returns:
        The start of that transaction, or only its file if the server does not send it.

    Raises:
        LoaderError: from transport or codec.
    """
    for file, begin, end in segments_before(transport, position):
        last: tuple[Gtid | None, int] | None = None
        try:
            for data, window, _, _ in _windows(transport, Interval(Position.at(file, begin), Position.at(file, end))):
                for start in window.index.transactions[-1:, w.T_START].tolist():
                    last = gtid_at(data, start), start
        except AnonymousRefused:
            return file
        if last is not None:
            gtid, start = last
            return "" if gtid else f"{file}:{start}"
    return ""


def _steps(transport: Transport, log: Interval) -> Iterator[tuple[GtidSet, Iterator[tuple[Gtid, Position]]]]:
    """Yield the GTID set of each window, and its transactions one by one with their ends."""
    for data, window, begin, end in _windows(transport, log):
        tally = GtidTally(data.form.mariadb)
        tally.add(data, window, begin, end)
        yield gtid_set(tally.parts(), mariadb=data.form.mariadb), _transactions(data, window)


def _transactions(data: LogBytes, window: Window) -> Iterator[tuple[Gtid, Position]]:
    for start, stop in window.index.transactions[:, [w.T_START, w.T_END]].tolist():
        gtid = gtid_at(data, start)
        if gtid is not None:
            yield gtid, Position.at(data.name, stop)


def _windows(transport: Transport, log: Interval) -> Iterator[tuple[LogBytes, Window, int, int]]:
    """Yield the windows of a log with their file, and the first and the end byte of the log in it."""
    for file, begin, end in transport.segments(log):
        if begin == end:
            continue
        place = Position.at(file, begin)
        span = whole_segment(file, place.lognum, begin, end, end)
        with transport.open(file, begin, end) as opened:
            data = log_bytes(opened, file)
            registry = TableRegistry(lambda _: False, mariadb=data.form.mariadb)
            cut_off = ignore_unfinished(data, newest=file == log.stop.file)
            for window in read_windows(data, span, registry, end, cut_off):
                if not window.more:
                    yield data, window, begin, end


def _alone(gtid: Gtid) -> GtidSet:
    return mysql_set([(gtid.source, gtid.number, gtid.number)]) if isinstance(gtid, MysqlGtid) else mariadb_set([gtid])


def _with(others: str, found: GtidSet, known: str) -> str:
    """Return the set `others` with the part of `found` that is not in `known`."""
    whole = union_gtids(known, type(found)())
    if isinstance(found, MysqlGtidSet) and isinstance(whole, MysqlGtidSet):
        return str(union_gtids(others, found.without(whole)))
    return str(union_gtids(others, found)) if missing_gtids(str(found), known) else others
