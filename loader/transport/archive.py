"""Log files of a server, with copies in an archive for the files that the server has purged.

Copies are verified, because a copy can be truncated, or belong to another server. A copy must end with a ROTATE or STOP
event, as on the server (MySQL manual, "Binary Log Event Types"), and the same server must have started it. Checksums
are verified while the file is walked. The GTIDs before each file must equal the GTIDs that were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from loader.binlog.constants import HEADER, MAGIC
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, GapError
from loader.model.identity import Identity
from loader.model.position import Interval
from loader.transport.base import LogFile, Transport
from loader.transport.event_read import read_exactly
from loader.transport.file_end import check_end
from loader.transport.segments import segments

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
            check_end(log, file, size)
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
