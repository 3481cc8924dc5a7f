"""Reads from an open log file: an exact number of bytes, or an event in pieces."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from loader.binlog.constants import HEADER
from loader.binlog.format import LogFormat
from loader.errors import BinlogFormatError
from loader.transport.base import LogFile

Bytes = NDArray[np.uint8]

_PIECE = 1024 * 1024


def outer_event(log: LogFile, offset: int, form: LogFormat, file: str) -> tuple[bytes, Iterator[bytes]]:
    """Return the header of an event and its body in pieces. The checksum is verified after the last piece."""
    header = read_exactly(log, offset, HEADER, file).tobytes()
    size = int.from_bytes(header[9:13], "little") - form.checksum

    def pieces() -> Iterator[bytes]:
        found = zlib.crc32(header)
        for at in range(HEADER, size, _PIECE):
            piece = read_exactly(log, offset + at, min(_PIECE, size - at), file).tobytes()
            found = zlib.crc32(piece, found)
            yield piece
        if form.checksum and found != int.from_bytes(read_exactly(log, offset + size, 4, file).tobytes(), "little"):
            raise BinlogFormatError(
                "the checksum of an event is wrong: the log is damaged here",
                file=file,
                position=offset,
            )

    return header, pieces()


def read_exactly(log: LogFile, offset: int, size: int, file: str) -> Bytes:
    """Return `size` bytes of the file from an offset.

    Raises:
        BinlogFormatError: the file has fewer bytes.
    """
    log.seek(offset)
    block = np.empty(size, np.uint8)
    at = 0
    while at < size:
        got = log.readinto(block.data[at:])
        if not got:
            raise BinlogFormatError("the log became shorter while it was read", file=file, position=offset + at)
        at += got
    return block
