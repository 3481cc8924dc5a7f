"""The fragments of a row event in an open log file, put together; for their format see loader.binlog.events.fragments.

The row event is held whole, as any row event is.
"""

from __future__ import annotations

from collections.abc import Iterator

from loader.binlog.constants import HEADER
from loader.binlog.events.fragments import HEAD_MOST, Group, row_event
from loader.binlog.format import LogFormat
from loader.binlog.index import ExpandedEvent, error_place
from loader.errors import BinlogFormatError
from loader.transport.base import LogFile
from loader.transport.pieces import outer_event, read_exactly

_ENDLESS = 1 << 62


def are_whole(log: LogFile, offset: int, stop: int, form: LogFormat, file: str) -> bool:
    """Whether all fragments of the row event whose first one stands at `offset` end by the byte `stop`.

    Raises:
        BinlogFormatError, UnsupportedError: see Group.add; by the place of the fragment.
    """
    group = Group()
    for _ in _fragments(log, group, offset, stop, form, file):
        pass
    return group.whole


def gathered(log: LogFile, offset: int, form: LogFormat, file: str) -> ExpandedEvent:
    """The row event whose first fragment stands at `offset`.

    Raises:
        BinlogFormatError: a wrong checksum or length, or less than a row event.
        BinlogFormatError, UnsupportedError: see Group.add; by the place of the fragment.
    """
    group, event, end = Group(), bytearray(), offset
    for at, size, start in _fragments(log, group, offset, _ENDLESS, form, file):
        end = at + size
        before = start - HEADER
        for piece in outer_event(log, at, form, file)[1]:
            event += piece[before:]
            before = max(0, before - len(piece))
    with error_place(file, offset):
        plain, compressed = row_event(bytes(event))
    return ExpandedEvent([plain], end, group.total, HEADER if compressed else 0, len(event) + form.checksum)


def _fragments(
    log: LogFile, group: Group, offset: int, stop: int, form: LogFormat, file: str
) -> Iterator[tuple[int, int, int]]:
    """Each fragment that ends by the byte `stop`, once it was added to the group.

    Its place, its size, and from which of its bytes on those of the row event stand.
    """
    at = offset
    while not group.whole and at + HEADER <= stop:
        header = read_exactly(log, at, HEADER, file).tobytes()
        size = int.from_bytes(header[9:13], "little")
        if at + size > stop:
            return
        with error_place(file, at):
            if size < HEADER + form.checksum:
                raise BinlogFormatError("no valid event starts here: its length is impossible")
            start = group.add(read_exactly(log, at, min(size, HEAD_MOST), file).tobytes(), form.checksum)
        yield at, size, start
        at += size
