"""Checks that a log file continues the file before it, and is not an older file with the same name.

After a reset, the server uses the names of its files again. An archive or a folder of copies can still have the older
file. On MySQL, its GTIDs repeat what was read. MariaDB's sets do not show that, so the set before each file is
compared. Without GTIDs, only the time in the first event tells (MySQL manual, "Format_description_event"). It is that
of the session that began the file, and SET TIMESTAMP changes it (seen on MySQL 9.7 and MariaDB 10.11).
"""

from __future__ import annotations

from collections.abc import Sequence

from loader.binlog.constants import HEADER, MAGIC
from loader.errors import LOAD_ALL_AGAIN
from loader.model.gtid import MariadbGtidSet, parse_gtid_set
from loader.source.continuity import LogReplaced
from loader.transport.base import Segment, Transport
from loader.transport.event_read import read_exactly

_CLOCK_SECONDS = 60  # servers correct their clocks


def check_times(transport: Transport, segments: Sequence[Segment]) -> None:
    """Check that the server did not start any file before the file that precedes it.

    Raises:
        LogReplaced: it did, by more than clocks are corrected.
        LoaderError: from transport.
    """
    before = 0
    for file, _, _ in segments if len(segments) > 1 else ():
        with transport.open(file, len(MAGIC), len(MAGIC) + HEADER) as log:
            begun = int.from_bytes(read_exactly(log, len(MAGIC), HEADER, file)[:4].tobytes(), "little")
        if begun + _CLOCK_SECONDS < before:
            raise _not_continued(file, f"the server started it {before - begun} seconds before the previous file")
        before = begun


def check_set(file: str, before: str, known: str, last: str) -> None:
    """Check that a MariaDB file begins after all transactions that were read.

    A server can forget a domain without transactions in its log (FLUSH BINARY LOGS DELETE_DOMAIN_ID), so not in the
    previous file.

    Args:
        file: the name of the file.
        before: the set that the file declares to be before it.
        known: the set of all transactions before it that were read from this log.
        last: the set of the previous file.

    Raises:
        LogReplaced: the set lacks transactions that were read.
    """
    declared, wanted, newest = parse_gtid_set(before), parse_gtid_set(known), parse_gtid_set(last)
    if not isinstance(wanted, MariadbGtidSet):
        return
    domains = set(declared.newest) if isinstance(declared, MariadbGtidSet) else set(wanted.newest)
    if isinstance(newest, MariadbGtidSet):
        domains |= set(newest.newest)
    lost = [gtid for domain, gtid in wanted.newest.items() if domain in domains and gtid not in declared]
    if lost:
        raise _not_continued(
            file, f"it starts after {before or 'no transaction'}, not after {', '.join(map(str, lost))}"
        )


def _not_continued(file: str, why: str) -> LogReplaced:
    return LogReplaced(
        "the log file does not continue the file before it",
        why=f"{why}: it is probably an older file of the same name, of before the log was reset",
        hint='if it is a copy (log_archive, or transport = "file"), replace it by the file of the server; if the'
        " server set its clock back, or a lagging replica or a session with SET TIMESTAMP began the file, read the log"
        f" over the network; or {LOAD_ALL_AGAIN}",
        file=file,
    )
