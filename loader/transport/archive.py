"""Log files of a server, with copies in an archive for the files that the server has purged.

Copies are verified, because a copy can be truncated, or belong to another server. A copy must end with a ROTATE or STOP
event, as on the server (MySQL manual, "Binary Log Event Types"), and the same server must have started it. Checksums
are verified while the file is walked. The GTIDs before each file must equal the GTIDs that were read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from loader.binlog.constants import HEADER, MAGIC, ROTATE
from loader.binlog.format import HEAD_BYTES, read_format
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, GapError
from loader.model.identity import Identity
from loader.model.position import Interval
from loader.transport.base import LogFile, Transport
from loader.transport.event_read import read_exactly
from loader.transport.segments import segments

_STOP = 3
_LAST_BYTES = 1024  # a ROTATE names the next file
_SERVER_ID = slice(5, 9)


class WithArchive:
    """A transport with an archive for the files that it does not have.

    Attributes:
        identity: of the server that must have written the files in the archive.
    """

    def __init__(self, primary: Transport, archive: Transport, identity: Identity | None) -> None:
        self._primary = primary
        self._archive = archive
        self._server_id = identity.server_id if identity else None

    def segments(self, interval: Interval) -> list[tuple[str, int, int]]:
        """See Transport."""
        try:
            return self._primary.segments(interval)
        except GapError:
            return segments(interval, self.size)

    @contextmanager
    def open(self, file: str, start: int, stop: int) -> Iterator[LogFile]:
        """See Transport."""
        where = self._primary if self._has(file) else self._archive
        with where.open(file, start, stop) as log:
            if where is self._archive:
                self._check_server(log, file)
            yield log

    def size(self, file: str) -> int:
        """See Transport.

        Raises:
            BinlogFormatError: the copy in the archive is truncated.
        """
        try:
            return self._primary.size(file)
        except GapError:
            size = self._archive.size(file)
        with self._archive.open(file, len(MAGIC), size) as log:
            self._check_server(log, file)
            _check_end(log, file, size)
        return size

    def _has(self, file: str) -> bool:
        try:
            self._primary.size(file)
        except GapError:
            return False
        return True

    def _check_server(self, log: LogFile, file: str) -> None:
        found = int.from_bytes(read_exactly(log, len(MAGIC), HEADER, file)[_SERVER_ID].tobytes(), "little")
        if self._server_id not in {None, found}:
            raise BinlogFormatError(
                "the log file in the archive was written by another server",
                why=f"its first event is of server id {found}, not {self._server_id}",
                hint=f"put the right file into the archive, or {LOAD_ALL_AGAIN}",
                file=file,
            )


def _check_end(log: LogFile, file: str, size: int) -> None:
    """Check that the last event ends a file.

    Raises:
        BinlogFormatError: it does not.
    """
    checksum = read_format(read_exactly(log, 0, min(size, HEAD_BYTES), file).tobytes(), file).checksum
    first = max(len(MAGIC), size - _LAST_BYTES)
    tail = read_exactly(log, first, size - first, file).tobytes()
    if not any(_ends(tail[at:], checksum) for at in range(len(tail) - HEADER + 1)):
        raise BinlogFormatError(
            "the copy of a log file in the archive is truncated",
            why="it does not end with a ROTATE or STOP event, as on a server",
            hint="copy it again after the server has started the next file",
            file=file,
        )


def _ends(data: bytes, checksum: int) -> bool:
    """Return whether the bytes are exactly one ROTATE or STOP event."""
    whole = data[4] in (ROTATE, _STOP) and int.from_bytes(data[9:13], "little") == len(data)
    return whole and (not checksum or zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little"))
