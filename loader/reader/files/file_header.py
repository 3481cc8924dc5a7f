"""The first events of a log file: when the server started the file, and the GTIDs of all files before it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from loader.binlog.constants import FORMAT_DESCRIPTION, HEADER, START_ENCRYPTION
from loader.errors import BinlogFormatError
from loader.model.gtid import GtidSet
from loader.reader.files.log_files import ListedFile
from loader.reader.files.log_walk import FIRST, LogBytes
from loader.reader.files.window import opened
from loader.reader.gtids import read_gtid_list, read_previous_gtids
from loader.transport.base import Opens

_HEAD_BYTES = 1 << 20
_SIZE = struct.Struct("<I")
_READERS = {35: read_previous_gtids, 163: read_gtid_list}


@dataclass(frozen=True)
class Head:
    """What the first events of a file say.

    Attributes:
        begun: when the server started the file, in seconds since 1970.
        before: the GTIDs of all files before this one; None if the server logs no GTIDs.
    """

    begun: int
    before: GtidSet | None


def read_head(files: Opens, file: ListedFile) -> Head:
    """Return the head of a file. Reads one mebibyte, or more if the GTID set needs it.

    Raises:
        BinlogFormatError: the file ends inside its first events.
    """
    most = _HEAD_BYTES
    while True:
        size = min(most, file.size)
        with opened(files, ListedFile(file.name, file.lognum, size)) as log:
            found = _head(log, size)
        if found:
            return found
        if size == file.size:
            raise _cut(file.name)
        most *= 8


def head_of(log: LogBytes, size: int) -> Head:
    """Return the head of an open file whose first `size` bytes can be read.

    Raises:
        BinlogFormatError: these bytes end inside the first events.
    """
    most = _HEAD_BYTES
    while not (found := _head(log, min(most, size))):
        if most >= size:
            raise _cut(log.name)
        most *= 8
    return found


def _head(log: LogBytes, size: int) -> Head | None:
    return _find(log.block(0, size).tobytes(), log.form.checksum)


def _cut(file: str) -> BinlogFormatError:
    return BinlogFormatError("the log ends inside its first events", file=file)


def _find(data: bytes, checksum: int) -> Head | None:
    """Return the head; None if the bytes end before it is complete."""
    begun, at = 0, FIRST
    while at + HEADER <= len(data):
        kind, size = data[at + 4], _SIZE.unpack_from(data, at + 9)[0]
        if kind == FORMAT_DESCRIPTION:
            begun = _SIZE.unpack_from(data, at)[0]
        elif kind == START_ENCRYPTION:
            pass  # an encrypted log of MariaDB has it before its GTIDs
        elif kind not in _READERS:
            return Head(begun, None)
        elif at + size <= len(data):
            return Head(begun, _READERS[kind](data[at + HEADER : at + size - checksum]))
        if at + size > len(data) or size < HEADER:
            return None
        at += size
    return Head(begun, None) if at >= len(data) else None
