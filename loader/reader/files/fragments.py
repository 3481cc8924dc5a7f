"""Joins the fragments of a row event in an open log file. Format: see loader.binlog.events.fragments.

The joined row event is held in memory, like any row event.
"""

from __future__ import annotations

from collections.abc import Iterator

from loader.binlog.constants import HEADER
from loader.binlog.events.fragments import HEAD_MOST, Group, row_event
from loader.binlog.format import LogFormat
from loader.binlog.index import ExpandedEvent, error_place
from loader.errors import BinlogFormatError
from loader.transport.base import LogFile
from loader.transport.event_read import outer_event, read_exactly

_ENDLESS = 1 << 62


def are_whole(log: LogFile, offset: int, stop: int, form: LogFormat, file: str) -> bool:
    """Return whether the row event whose first fragment is at `offset` ends at the byte `stop` or before.

    Raises:
        BinlogFormatError, UnsupportedError: see Group.add; with the position of the fragment.
    """
    group = Group()
    for _ in _fragments(log, group, offset, stop, form, file):
        pass
    return group.whole


def gathered(log: LogFile, offset: int, form: LogFormat, file: str) -> ExpandedEvent:
    """Return the row event whose first fragment is at `offset`.

    Raises:
        BinlogFormatError: a checksum or length is wrong, or the fragments are not a whole row event.
        BinlogFormatError, UnsupportedError: see Group.add; with the position of the fragment.
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
    """Add each fragment that ends at the byte `stop` or before to the group; then yield it.

    Yields its offset, its size, and the offset in it of the bytes of the row event.
    """
    at = offset
    while not group.whole and at + HEADER <= stop:
        header = read_exactly(log, at, HEADER, file).tobytes()
        size = int.from_bytes(header[9:13], "little")
        if at + size > stop:
            return
        with error_place(file, at):
            if size < HEADER + form.checksum:
                raise BinlogFormatError(
                    "the bytes at this position are not an event: the length in its header is impossible"
                )
            start = group.add(read_exactly(log, at, min(size, HEAD_MOST), file).tobytes(), form.checksum)
        yield at, size, start
        at += size
