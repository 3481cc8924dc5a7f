"""Log files over the network: COM_BINLOG_DUMP into a spool file on local disk.

The spool holds each event at its own offset in the server's file, so that everything after it works as on a file, and
is read while it still fills.
"""

from __future__ import annotations

import secrets
import socket
import struct
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from pymysql.connections import Connection
from pymysql.err import OperationalError, raise_mysql_exception

from loader.binlog import packets
from loader.binlog.constants import FORMAT_DESCRIPTION, HEADER, HEARTBEATS, MAGIC, ROTATE, START_ENCRYPTION
from loader.errors import BinlogFormatError, GapError, UnsupportedError
from loader.model.position import Interval
from loader.transport.address import ServerAddress
from loader.transport.base import LogFile
from loader.transport.connection import connected, log_sizes, server_errors
from loader.transport.spool import Spool

_COM_BINLOG_DUMP = 0x12
_NON_BLOCKING = 0x01  # end at the end of the log instead of waiting
_ANNOTATE_ROWS = 0x02  # MariaDB: without them the offsets of later events would not be the file's
_BLOCK = 1024 * 1024
_LOG_ERROR = 1236  # ER_MASTER_FATAL_ERROR_READING_BINLOG
_NO_FILE = "Could not find first log file"  # what both servers say with it of a file that is gone


class NetworkTransport:
    """Reads the log as a replica does, under a server id and uuid of its own for each file."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    def segments(self, interval: Interval) -> list[tuple[str, int, int]]:
        """See Transport: by SHOW BINARY LOGS."""
        with connected(self._address) as connection:
            sizes = log_sizes(connection)
        start, stop = interval.start, interval.stop
        found = []
        for lognum in range(start.lognum, stop.lognum + 1):
            file = f"{start.basename}.{lognum:06d}"
            if file not in sizes:
                raise self._purged(file, f"the oldest log of the server is {min(sizes, default='none')}")
            begin = start.logpos if lognum == start.lognum else 4
            found.append((file, begin, stop.logpos if lognum == stop.lognum else sizes[file]))
        return found

    @contextmanager
    def open(self, file: str, start: int, stop: int) -> Iterator[LogFile]:
        """See Transport: the spool, removed at the end."""
        if start >= 2**32:
            raise UnsupportedError(
                "a dump cannot start beyond 4 GiB of a log file",
                hint="read the server's log files (transport = file), or load the tables again",
                file=file,
                position=start,
            )
        with tempfile.TemporaryFile(prefix="loader-spool-") as disk, connected(self._address) as connection:
            self._request(connection, file, start)
            spool = Spool(disk)
            spool.fill(lambda spool: self._receive(connection, spool, file, start, stop), stop)
            try:
                yield spool
            finally:
                _hang_up(connection)
                spool.join()

    def _request(self, connection: Connection[Any], file: str, start: int) -> None:
        with connection.cursor() as cursor:
            identity = str(uuid.uuid4())
            # Both spellings: servers before 8.0.26 and MariaDB know only the first.
            for word in ("master", "source"):
                cursor.execute(f"SET @{word}_binlog_checksum = @@global.binlog_checksum")
            for word in ("slave", "replica"):
                cursor.execute(f"SET @{word}_uuid = %s", (identity,))
            cursor.execute("SET @mariadb_slave_capability = 4")
        server_id = secrets.randbelow(2**31) + 2**31 - 1
        flags = _NON_BLOCKING | _ANNOTATE_ROWS
        payload = struct.pack("<IHI", start, flags, server_id) + file.encode()
        connection._execute_command(_COM_BINLOG_DUMP, payload)

    def _receive(self, connection: Connection[Any], spool: Spool, file: str, start: int, stop: int) -> None:
        """Fill the spool with MAGIC, the format event and the bytes from start to stop."""
        with server_errors(self._address):
            stream = _Events(connection)
            head = b""
            while not (skip := _head_length(head, inside=len(MAGIC) < start < stop)):
                head += self._more(stream, file, start)
            form = MAGIC + _format_event(head, file)
            # The format event at the file's start is one of its own events, and is written with the magic.
            at = len(form) if start == len(MAGIC) else start
            spool.write(0, form, ready=at)
            rest = head[skip:]
            while at < stop:
                piece = rest or self._more(stream, file, at)
                rest = b""
                spool.write(at, piece[: stop - at])
                at += len(piece)

    def _more(self, stream: _Events, file: str, at: int) -> bytes:
        try:
            piece = stream.read()
        except OperationalError as error:
            if error.args[0] != _LOG_ERROR:
                raise
            why = str(error.args[1])
            if _NO_FILE in why:
                raise self._purged(file, why) from error
            raise BinlogFormatError(
                "the server cannot read its log from there",
                why=why,
                hint="compare the position with SHOW BINARY LOGS and mysqlbinlog; is it the boundary of an event?",
                file=file,
                position=at,
            ) from error
        if not piece:
            raise BinlogFormatError(
                "the server's log ends before the interval does",
                hint="it may have lost its newest transactions in a crash; compare with SHOW BINARY LOGS",
                file=file,
                position=at,
            )
        return piece

    def _purged(self, file: str, why: str) -> GapError:
        return GapError(
            "a log file that is still needed is gone",
            why=why,
            hint="restore it from an archive, or load the tables again; raise binlog_expire_logs_seconds",
            source=self._address,
            file=file,
        )


class _Events:
    """The bytes of the events of a running dump, without the packets around them."""

    def __init__(self, connection: Connection[Any]) -> None:
        # PyMySQL reads packets one by one into Python objects; blocks straight from its stream are 50 times cheaper.
        self._file = connection._rfile
        self._block = np.empty(_BLOCK, np.uint8)
        self._out = np.empty(_BLOCK, np.uint8)
        self._state = np.zeros(4, np.int64)
        self._kept = 0

    def read(self) -> bytes:
        """The next bytes of events; empty at the end of the log.

        Raises:
            OperationalError: the server ended the dump with an error, or the connection broke.
        """
        size = self._kept
        while True:
            state = self._state
            state[[packets.READ, packets.WRITTEN]] = 0
            status = packets.unpack(self._block, size, self._out, state)
            used, written = int(state[packets.READ]), int(state[packets.WRITTEN])
            self._kept = size - used
            if used:
                self._block[: self._kept] = self._block[used:size].copy()
            if written:
                return self._out[:written].tobytes()
            if status == packets.REPLY:
                return self._end()
            got = self._file.readinto1(self._block.data[self._kept :])
            if not got:
                raise OperationalError(2013, "Lost connection to the server during the dump")
            size = self._kept + got

    def _end(self) -> bytes:
        reply = self._block[4 : self._kept].tobytes()
        if reply[0] == 0xFF:
            raise_error(reply)
        return b""


def _hang_up(connection: Connection[Any]) -> None:
    """End a dump that may still run: its reader wakes up with an error."""
    try:
        connection._sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the server was first


def raise_error(reply: bytes) -> NoReturn:
    """Raise the driver's exception for an error packet."""
    raise_mysql_exception(reply)
    raise OperationalError(2013, "the server sent an error that cannot be read")


def _events_of(head: bytes) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of each event at the start of a dump whose header is there; the last one may be cut."""
    at = 0
    while at + HEADER <= len(head):
        end = at + int.from_bytes(head[at + 9 : at + 13], "little")
        yield head[at + 4], at, end
        at = end


def _head_length(head: bytes, *, inside: bool) -> int:
    """Bytes before the first event that was asked for: a made-up ROTATE and the format; 0 while not all is there.

    Of an encrypted log MariaDB sends START_ENCRYPTION too, when it is asked for events inside the file.
    """
    formatted = 0
    for kind, start, end in _events_of(head):
        if formatted and kind != START_ENCRYPTION:
            return start
        if kind == FORMAT_DESCRIPTION:
            formatted = end
        elif not formatted and kind != ROTATE and kind not in HEARTBEATS:
            break
        if formatted and end <= len(head) and (kind == START_ENCRYPTION or not inside):
            return end
    return 0


def _format_event(head: bytes, file: str) -> bytes:
    for kind, start, end in _events_of(head):
        if kind == FORMAT_DESCRIPTION:
            return head[start:end]
    raise BinlogFormatError("the dump does not start with the log's format", file=file)
