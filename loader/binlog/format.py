"""The head of a log file: its magic and the FORMAT_DESCRIPTION event, which says how to read the rest.

Format: MySQL internals, "FORMAT_DESCRIPTION_EVENT": binlog version 2, server version 50, creation time 4, header
length 1, post-header lengths; from 5.6.1 (MariaDB 5.3) on the checksum algorithm 1, then the checksum 4, which this
event has whatever the algorithm.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import FLAG_IN_USE, FORMAT_DESCRIPTION, HEADER, MAGIC, MAGIC_ENCRYPTED, event_name
from loader.errors import BinlogFormatError, UnsupportedError

HEAD_BYTES = 4096
"""The first bytes of a file, which hold its magic and format."""

_SERVER_VERSION = slice(HEADER + 2, HEADER + 52)
_VERSION = re.compile(r"([5-9]|\d\d)\.\d+\.\d+")
_PERMUTED = re.compile(r"5\.[12].*-(wl2325|a_drop)")
_EARLY = re.compile(r"5\.1\.(\d+)")
_FIRST_WITH_METADATA = 18
_POST_HEADERS = {2: 13, 19: 8, 23: 8, 24: 8, 25: 8, 30: 10, 31: 10, 32: 10}
_FIXED = 57  # bytes before the post-header lengths
_OLD_LENGTHS = 27  # the most post-header lengths of servers without checksums; later ones have more
_ALGORITHM_BYTES = 5  # algorithm and checksum at the end of the event


@dataclass(frozen=True)
class LogFormat:
    """How a file is written: the server's version, bytes of checksum per event, and the end of this first event."""

    server_version: str
    checksum: int
    end: int
    in_use: bool

    @property
    def mariadb(self) -> bool:
        """Whether a MariaDB server wrote the file."""
        return "mariadb" in self.server_version.lower()


def read_format(head: bytes, file: str) -> LogFormat:
    """The format of a file from its first bytes (HEAD_BYTES, or all of a shorter file).

    Raises:
        BinlogFormatError: not a binary log, or a damaged first event.
        UnsupportedError: encrypted, or of a version before 5.0.
    """
    if head.startswith(MAGIC_ENCRYPTED):
        raise UnsupportedError(
            "the log file is encrypted", hint="read it over the network, which is not encrypted so", file=file
        )
    if not head.startswith(MAGIC):
        raise BinlogFormatError("this is not a binary log: it does not start with fe 62 69 6e", file=file)
    return read_format_event(head[4:], file)


def log_identity(form: bytes) -> tuple[bytes, bytes, bytes]:
    """What of a format event stays the same while the file lives: time, server id, and the server's version."""
    return form[:4], form[5:9], form[_SERVER_VERSION]


def read_format_event(data: bytes, file: str) -> LogFormat:
    """The same from the event alone, which starts `data`."""
    if len(data) < HEADER or len(data) < int.from_bytes(data[9:13], "little"):
        raise BinlogFormatError("the first event of the log is cut", file=file)
    kind, size = data[4], int.from_bytes(data[9:13], "little")
    if kind != FORMAT_DESCRIPTION:
        raise UnsupportedError(
            f"the log starts with {event_name(kind)}, not FORMAT_DESCRIPTION: it is older than MySQL 5.0", file=file
        )
    event = data[:size]
    cursor = Cursor(event[HEADER:])
    version, server = cursor.number(2), cursor.take(50).split(b"\0")[0].decode("ascii", "replace")
    cursor.take(4)
    header = cursor.number(1)
    _check_release(server, file)
    if not _VERSION.match(server):
        raise BinlogFormatError(f"the log's first event names {server!r} as the version of its server", file=file)
    if version != 4 or header != HEADER:
        raise UnsupportedError(f"binary log version {version} is not covered", file=file)
    checksum = _checksum(event, file)
    _check_lengths(event, file)
    in_use = bool(int.from_bytes(event[17:19], "little") & FLAG_IN_USE)
    return LogFormat(server, checksum, 4 + size, in_use)


def _check_release(server: str, file: str) -> None:
    """Refuse logs of releases that are of version 4 but mean other things by it."""
    if _PERMUTED.match(server):
        why = "it was written by a trial release that gives its event types other numbers"
    elif (early := _EARLY.match(server)) and int(early[1]) < _FIRST_WITH_METADATA:
        why = "its table maps do not say how the values of its rows are written (row events of version 0)"
    else:
        return
    raise UnsupportedError(f"the log of a {server} server is not covered", why=why, file=file)


def _check_lengths(event: bytes, file: str) -> None:
    """Whether the fixed fields of events are as long as they are read here; types a server does not know have none."""
    lengths = event[HEADER + _FIXED :]
    for kind, expected in _POST_HEADERS.items():
        if kind <= len(lengths) - _ALGORITHM_BYTES and lengths[kind - 1] not in (0, expected):
            raise UnsupportedError(
                f"the log has {event_name(kind)} events with {lengths[kind - 1]} bytes of fixed fields, not {expected}",
                why="it was written by a server before MySQL 5.1.18, or is damaged",
                file=file,
            )


def _checksum(event: bytes, file: str) -> int:
    if len(event) <= HEADER + _FIXED + _OLD_LENGTHS:
        return 0
    algorithm = event[-_ALGORITHM_BYTES]
    # A server that dumps its log from the middle takes the end position out, and without checksums keeps the old sum.
    dumped = algorithm == 0 and event[13:17] == bytes(4)
    # The server sums this event up before it sets the in-use flag.
    plain = event[:17] + bytes([event[17] & ~FLAG_IN_USE]) + event[18:-4]
    if not dumped and zlib.crc32(plain) != int.from_bytes(event[-4:], "little"):
        raise BinlogFormatError("the checksum of the log's first event is wrong", file=file)
    if algorithm not in (0, 1):
        raise UnsupportedError(f"checksum algorithm {algorithm} is not known", file=file)
    return 4 if algorithm else 0
