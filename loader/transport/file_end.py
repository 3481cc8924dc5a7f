"""Whether a copy of a finished log file is whole.

A server ends a file with a ROTATE or STOP event (MySQL manual, "Binary Log Event Types"), unless it crashes.
"""

from __future__ import annotations

import zlib

from loader.binlog.constants import HEADER, MAGIC, ROTATE
from loader.binlog.format import HEAD_BYTES, read_format
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError
from loader.transport.base import LogFile
from loader.transport.event_read import read_exactly

_STOP = 3
_LAST_BYTES = 1024  # a ROTATE names the next file


def check_end(log: LogFile, file: str, size: int) -> None:
    """Check that the last event ends a file.

    Raises:
        BinlogFormatError: it does not.
    """
    checksum = read_format(read_exactly(log, 0, min(size, HEAD_BYTES), file).tobytes(), file).checksum
    first = max(len(MAGIC), size - _LAST_BYTES)
    tail = read_exactly(log, first, size - first, file).tobytes()
    if not any(_ends(tail[at:], checksum) for at in range(len(tail) - HEADER + 1)):
        raise BinlogFormatError(
            "the copy of a log file is truncated",
            why="it does not end with a ROTATE or STOP event, as on a server",
            hint="copy it again after the server has started the next file; if the server crashed at the end of this"
            f" file, no copy can be verified: {LOAD_ALL_AGAIN}",
            file=file,
        )


def _ends(data: bytes, checksum: int) -> bool:
    """Return whether the bytes are exactly one ROTATE or STOP event."""
    whole = data[4] in (ROTATE, _STOP) and int.from_bytes(data[9:13], "little") == len(data)
    return whole and (not checksum or zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "little"))
