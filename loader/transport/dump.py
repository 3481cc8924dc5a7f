"""A running dump of one log file: COM_BINLOG_DUMP, or for an offset beyond 4 GiB COM_BINLOG_DUMP_GTID.

Formats: MySQL's protocol, "COM_BINLOG_DUMP" (32-bit place) and "COM_BINLOG_DUMP_GTID" (64-bit place, and a set of
GTIDs to leave out, which is empty here); MariaDB's "COM_BINLOG_DUMP".
"""

from __future__ import annotations

import secrets
import struct
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
from pymysql.connections import Connection
from pymysql.err import OperationalError, raise_mysql_exception

from loader.binlog.constants import FORMAT_DESCRIPTION, HEADER, MAGIC, ROTATE, START_ENCRYPTION
from loader.binlog.events import packets
from loader.errors import BinlogFormatError
from loader.transport.server.driver import reply_stream, send_command

HEARTBEAT_SECONDS = 10
"""A server that has nothing to send sends a heartbeat after this time."""

LOG_ERROR = 1236
"""ER_SOURCE_FATAL_ERROR_READING_BINLOG: the server cannot send the requested log."""

ANONYMOUS = "Cannot replicate anonymous transaction"
"""The text of MySQL with LOG_ERROR for a transaction without a GTID, while its gtid_mode is ON."""

_COM_BINLOG_DUMP, _COM_BINLOG_DUMP_GTID = 0x12, 0x1E
_NON_BLOCKING = 0x01  # end at the end of the log instead of waiting
_ANNOTATE_ROWS = 0x02  # MariaDB: without these events, the offsets of later events differ from the file
_BEYOND = 2**32
_NO_GTIDS = struct.pack("<IQ", 8, 0)  # size of a set, and its number of sources
_BLOCK = 1024 * 1024


class Dump:
    """The events of a log file from an offset on, as the server sends them.

    Attributes:
        form: the format event.
        at: offset in the file of the next byte to read.
        begun: offset of the last event that started before it.
    """

    def __init__(self, connection: Connection[Any], file: str, start: int) -> None:
        prepare(connection)
        self._file = file
        first = _ask(connection, file, start)
        self._stream = Events(connection)
        self.form, self._rest = self._head(start, inside=first > len(MAGIC))
        # The format event at the start belongs to the file. For that offset, the server sends the events after it.
        self.at = self.begun = first if first > len(MAGIC) else len(MAGIC) + len(self.form)
        self._pass_over(start)

    def read(self) -> bytes:
        """Return the next bytes; empty at the end of the log.

        Raises:
            OperationalError: the server ended the dump with an error, or the connection broke.
        """
        piece, self._rest = self._rest, b""
        if not piece:
            piece = self._stream.read()
            if self._stream.begun >= 0:
                self.begun = self.at + self._stream.begun
        self.at += len(piece)
        return piece

    def _head(self, start: int, *, inside: bool) -> tuple[bytes, bytes]:
        """Return the format event, and the received bytes from the first wanted event on."""
        head = b""
        while not (found := _parted(head, inside=inside)):
            piece = self._stream.read()
            if not piece and (found := _parted(head, inside=False)):
                break
            if not piece:
                raise BinlogFormatError("the dump does not start with the log's format", file=self._file)
            head += piece
        return found

    def _pass_over(self, start: int) -> None:
        """Skip to the requested offset, if the server could not start there."""
        while self.at < start and (piece := self.read()):
            if self.at > start:
                self._rest, self.at = piece[start - self.at :], start
        if self.at == start:
            self.begun = start


class Events:
    """The bytes of the events of a running dump, without packet headers and heartbeats.

    The bytes end with the first file, unless `several` files are wanted.

    Attributes:
        begun: offset of the last event start in the bytes that were read last; -1 for none.
    """

    def __init__(self, connection: Connection[Any], *, several: bool = False) -> None:
        self._file = reply_stream(connection)
        self._block = np.empty(_BLOCK, np.uint8)
        self._out = np.empty(_BLOCK, np.uint8)
        self._state = np.zeros(7, np.int64)
        self._state[packets.FORMATTED] = -1 if several else 0
        self._kept = 0
        self.begun = -1

    def read(self) -> bytes:
        """Return the next bytes of events; empty at the end.

        Raises:
            OperationalError: the server ended the dump with an error, or the connection broke.
            BinlogFormatError: a server never sends such a packet.
        """
        size = self._kept
        while True:
            state = self._state
            state[[packets.READ, packets.WRITTEN, packets.BEGUN]] = 0, 0, -1
            status = packets.unpack(self._block, size, self._out, state)
            used, written = int(state[packets.READ]), int(state[packets.WRITTEN])
            self._kept = size - used
            if used:
                self._block[: self._kept] = self._block[used:size].copy()
            if written:
                self.begun = int(state[packets.BEGUN])
                return self._out[:written].tobytes()
            if status == packets.NEXT:
                return b""
            if status == packets.REPLY:
                return self._end()
            if status == packets.DAMAGED:
                raise BinlogFormatError(
                    "the server sent an empty packet in a dump",
                    why="only the end of an event of 16 MiB or more is sent as an empty packet",
                    hint="look for a proxy between the loader and the server that changes the data",
                )
            got = self._file.readinto1(self._block.data[self._kept :])
            if not got:
                raise OperationalError(2013, "Lost connection to the server during the dump")
            size = self._kept + got

    def _end(self) -> bytes:
        reply = self._block[4 : self._kept].tobytes()
        if reply[0] == 0xFF:
            raise_error(reply)
        return b""


def raise_error(reply: bytes) -> NoReturn:
    """Raise the driver's exception for an error packet."""
    with suppress(struct.error, IndexError, UnicodeDecodeError):
        raise_mysql_exception(reply)
    raise OperationalError(2013, "the server sent an error that cannot be read")


def event_size(header: bytes) -> int:
    """Return the size of the event that starts with that header, in bytes.

    Raises:
        BinlogFormatError: the size is smaller than the header.
    """
    size = int.from_bytes(header[9:13], "little")
    if size < HEADER:
        raise BinlogFormatError(
            f"the server sent an event of {size} bytes",
            why=f"its header alone has {HEADER}",
            hint="compare with mysqlbinlog --read-from-remote-server; look for a proxy that changes the data",
        )
    return size


def prepare(connection: Connection[Any]) -> None:
    """Set the session variables that a replica sets before it requests events."""
    identity = str(uuid.uuid4())
    with connection.cursor() as cursor:
        # Both spellings: servers before 8.0.26 and MariaDB know only the first.
        for word in ("master", "source"):
            cursor.execute(f"SET @{word}_binlog_checksum = @@global.binlog_checksum")
            cursor.execute(f"SET @{word}_heartbeat_period = %s", (HEARTBEAT_SECONDS * 10**9,))
        for word in ("slave", "replica"):
            cursor.execute(f"SET @{word}_uuid = %s", (identity,))
        cursor.execute("SET @mariadb_slave_capability = 4")


def command(connection: Connection[Any], file: str, start: int) -> None:
    """Return COM_BINLOG_DUMP from an offset below 4 GiB."""
    payload = struct.pack("<IHI", start, _NON_BLOCKING | _ANNOTATE_ROWS, _server_id()) + file.encode()
    send_command(connection, _COM_BINLOG_DUMP, payload)


def gtid_command(connection: Connection[Any], file: str, start: int, gtids: bytes = _NO_GTIDS) -> None:
    """Return COM_BINLOG_DUMP_GTID from an offset, without the transactions of an encoded set."""
    name = file.encode()
    payload = struct.pack("<HII", _NON_BLOCKING, _server_id(), len(name)) + name + struct.pack("<Q", start) + gtids
    send_command(connection, _COM_BINLOG_DUMP_GTID, payload)


def _ask(connection: Connection[Any], file: str, start: int) -> int:
    """Request events from an offset, and return where they start: earlier if the server cannot start beyond 4 GiB."""
    if start < _BEYOND:
        command(connection, file, start)
        return start
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES LIKE 'gtid_mode'")
        modes = cursor.fetchall()
    if modes and modes[0][1] == "ON":
        gtid_command(connection, file, start)
        return start
    command(connection, file, len(MAGIC))
    return len(MAGIC)


def _server_id() -> int:
    return secrets.randbelow(2**31) + 2**31 - 1


def _events_of(head: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield type, start and end of each event at the start of a dump. The last event may be incomplete."""
    at = 0
    while at + HEADER <= len(head):
        end = at + event_size(head[at : at + HEADER])
        yield head[at + 4], at, end
        at = end


def _parted(head: bytes, *, inside: bool) -> tuple[bytes, bytes] | None:
    """Return the format event and the bytes after the events before the wanted ones; None until all were received.

    The server sends an artificial ROTATE before it. For an encrypted log, MariaDB sends START_ENCRYPTION after it, also
    if the requested events are inside the file.
    """
    form = b""
    for kind, start, end in _events_of(head):
        if form and kind != START_ENCRYPTION:
            return form, head[start:]
        if kind == FORMAT_DESCRIPTION:
            form = head[start:end]
        elif not form and kind != ROTATE:
            return None
        if end <= len(head) and form and (not inside or kind == START_ENCRYPTION):
            return form, head[end:]
    return None
