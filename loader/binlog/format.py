"""The start of a log file: its magic and the FORMAT_DESCRIPTION event, which says how to read the rest.

Format: MySQL internals, "FORMAT_DESCRIPTION_EVENT". Fields and their bytes: binlog version 2, server version 50,
creation time 4, header length 1, post-header lengths. MySQL 5.6.1 and MariaDB 5.3 added the checksum algorithm 1 and
the checksum 4. This event has a checksum even if the algorithm is "none".
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import FLAG_IN_USE, FORMAT_DESCRIPTION, HEADER, MAGIC, MAGIC_ENCRYPTED, event_name
from loader.errors import LOAD_ALL_AGAIN, NEWER_LOADER, BinlogFormatError, UnsupportedError

HEAD_BYTES = 4096
"""The magic and the FORMAT_DESCRIPTION event lie within this many bytes from the start of a file."""

_UPGRADE = f"upgrade the server; then {LOAD_ALL_AGAIN}"
_SERVER_VERSION = slice(HEADER + 2, HEADER + 52)
_VERSION = re.compile(r"([5-9]|\d\d)\.\d+\.\d+")
_PERMUTED = re.compile(r"5\.[12].*-(wl2325|a_drop)")
_EARLY = re.compile(r"5\.1\.(\d+)")
_FIRST_WITH_METADATA = 18
_POST_HEADERS = {2: 13, 19: 8, 23: 8, 24: 8, 25: 8, 30: 10, 31: 10, 32: 10}
_FIXED = 57  # bytes before the post-header lengths
_OLD_LENGTHS = 27  # servers without checksums write at most this many post-header lengths
_ALGORITHM_BYTES = 5  # algorithm and checksum at the end of the event


@dataclass(frozen=True)
class LogFormat:
    """How a log file is written.

    Attributes:
        server_version: of the server that wrote the file.
        checksum: bytes of checksum at the end of each event, 4 or 0.
        end: file offset behind the FORMAT_DESCRIPTION event.
        in_use: the server has not closed the file.
        started: the server started with this file. Its other files have no time of creation.
    """

    server_version: str
    checksum: int
    end: int
    in_use: bool
    started: bool

    @property
    def mariadb(self) -> bool:
        """Return whether a MariaDB server wrote the file."""
        return "mariadb" in self.server_version.lower()


def read_format(head: bytes, file: str) -> LogFormat:
    """Return the format of a file from its first HEAD_BYTES bytes, or from all bytes of a shorter file.

    Raises:
        BinlogFormatError: the file is not a binary log, or its first event is damaged.
        UnsupportedError: the file is encrypted, or its format is not supported.
    """
    if head.startswith(MAGIC_ENCRYPTED):
        raise UnsupportedError(
            "the log file is encrypted",
            hint='set transport = "network" for the source: the server sends its log decrypted',
            file=file,
        )
    if not head.startswith(MAGIC):
        raise BinlogFormatError(
            "this is not a binary log: it does not start with fe 62 69 6e",
            hint="SHOW BINARY LOGS on the server names its log files; give one of them, or their folder",
            file=file,
        )
    return read_format_event(head[4:], file)


def log_identity(form: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the fields of a format event that a file keeps for life: creation time, server id and server version."""
    return form[:4], form[5:9], form[_SERVER_VERSION]


def read_format_event(data: bytes, file: str) -> LogFormat:
    """Return the format of a file from its FORMAT_DESCRIPTION event, with which `data` starts.

    Raises:
        BinlogFormatError, UnsupportedError: see `read_format`.
    """
    if len(data) < HEADER or len(data) < int.from_bytes(data[9:13], "little"):
        raise BinlogFormatError("the first event of the log is truncated", file=file)
    kind, size = data[4], int.from_bytes(data[9:13], "little")
    if kind != FORMAT_DESCRIPTION:
        raise UnsupportedError(
            f"the log starts with {event_name(kind)}, not FORMAT_DESCRIPTION: it is older than MySQL 5.0",
            hint=_UPGRADE,
            file=file,
        )
    event = data[:size]
    cursor = Cursor(event[HEADER:])
    version, server = cursor.number(2), cursor.take(50).split(b"\0")[0].decode("ascii", "replace")
    created = cursor.number(4)
    header = cursor.number(1)
    _check_release(server, file)
    if not _VERSION.match(server):
        raise BinlogFormatError(f"the first event of the log has an invalid server version: {server!r}", file=file)
    if version != 4:
        raise UnsupportedError(f"binary log version {version} is not supported", hint=_UPGRADE, file=file)
    if header != HEADER:
        raise UnsupportedError(f"event headers of {header} bytes are not supported", hint=NEWER_LOADER, file=file)
    checksum = _checksum(event, file)
    _check_lengths(event, file)
    in_use = bool(int.from_bytes(event[17:19], "little") & FLAG_IN_USE)
    return LogFormat(server, checksum, 4 + size, in_use, created != 0)


def _check_release(server: str, file: str) -> None:
    """Refuse server releases whose log says format version 4, but has another layout."""
    if _PERMUTED.match(server):
        why = "this preview release numbered its event types differently"
    elif (early := _EARLY.match(server)) and int(early[1]) < _FIRST_WITH_METADATA:
        why = "its table maps do not describe how column values are encoded (row events of version 0)"
    else:
        return
    raise UnsupportedError(f"binary logs of MySQL {server} are not supported", why=why, hint=_UPGRADE, file=file)


def _check_lengths(event: bytes, file: str) -> None:
    """Refuse other lengths of fixed fields than this codec reads. An event type unknown to the server has length 0."""
    lengths = event[HEADER + _FIXED :]
    for kind, expected in _POST_HEADERS.items():
        if kind <= len(lengths) - _ALGORITHM_BYTES and lengths[kind - 1] not in (0, expected):
            raise UnsupportedError(
                f"{event_name(kind)} events have {lengths[kind - 1]} bytes of fixed fields instead of {expected}",
                why="the server is older than MySQL 5.1.18, or the log is damaged",
                hint=_UPGRADE,
                file=file,
            )


def _checksum(event: bytes, file: str) -> int:
    if len(event) <= HEADER + _FIXED + _OLD_LENGTHS:
        return 0
    algorithm = event[-_ALGORITHM_BYTES]
    # A server that sends its log from the middle sets the end position to 0. Without checksums it keeps the old sum.
    dumped = algorithm == 0 and event[13:17] == bytes(4)
    # The server computes the checksum of this event before it sets the in-use flag.
    plain = event[:17] + bytes([event[17] & ~FLAG_IN_USE]) + event[18:-4]
    if not dumped and zlib.crc32(plain) != int.from_bytes(event[-4:], "little"):
        raise BinlogFormatError("the checksum of the first event of the log is wrong", file=file)
    if algorithm not in (0, 1):
        raise UnsupportedError(f"checksum algorithm {algorithm} is not supported", hint=NEWER_LOADER, file=file)
    return 4 if algorithm else 0
