"""Row events in fragments: MariaDB 12.3 and later writes a large row event as consecutive PARTIAL_ROW_DATA events.

Format: MariaDB, `log_event_server.cc` ("Rows_log_event_fragmenter", MDEV-32570). Fields of a fragment: number of
fragments 4, number of this fragment 4 (from 1 on), flags 1. Flag 1, only in the first fragment: bytes of the row event
8. Then the next bytes of the row event: header, post-header, columns, row images. The row event has no checksum. The
length in its header counts a checksum if the server writes checksums.

MDEV-40768, fixed in 12.3.3: with `log_bin_compress` the server gives the row event the type of a compressed event, but
does not compress its row images. So the bytes decide: compressed images are exactly one zlib stream with the stated
length and a valid checksum.
"""

from __future__ import annotations

import struct

from loader.binlog.constants import HEADER, PARTIAL_ROW_DATA, event_name
from loader.binlog.events.compressed_events import PLAIN_ROWS, uncompress_event, with_type
from loader.errors import LOAD_ALL_AGAIN, NEWER_LOADER, BinlogFormatError, LoaderError, UnsupportedError

HEAD_MOST = HEADER + 17
"""All fields of a fragment lie within this many bytes of its event."""

_FIELDS = struct.Struct("<IIB")
_SIZED = 1
_SIZE = struct.Struct("<Q")
_EVENT_MOST = 0xFFFFFFFF  # the length of an event has 32 bits
_CHECKSUM = 4
_ROWS_FIXED = 8


class Group:
    """The fragments of one row event. Each fragment is checked against those before it.

    Attributes:
        total: number of fragments; 0 before the first is added.
        seen: number of fragments added.
        size: bytes of the row event.
        held: bytes of the row event in the added fragments.
    """

    def __init__(self) -> None:
        self.total = self.seen = self.size = self.held = 0

    @property
    def whole(self) -> bool:
        """Return whether the last fragment was added."""
        return self.seen > 0 and self.seen == self.total

    def add(self, head: bytes, checksum: int) -> int:
        """Add the next fragment; return the offset in its event of the bytes of the row event.

        Args:
            head: the first bytes of the fragment's event: HEAD_MOST, or all of a shorter event.
            checksum: bytes of checksum at the end of the fragment's event, 4 or 0.

        Raises:
            BinlogFormatError: another fragment must come next, or the sizes do not add up.
            UnsupportedError: the flags are unknown, or the row event is larger than 4 GiB.
        """
        if head[4] != PARTIAL_ROW_DATA:
            raise _damage(f"a row event lacks fragments: {event_name(head[4])} follows {self.seen} of {self.total}")
        length = int.from_bytes(head[9:13], "little") - checksum
        start = HEADER + _FIELDS.size
        if length < start:
            raise _damage("a fragment of a row event is too short for its fields")
        total, number, flags = _FIELDS.unpack_from(head, HEADER)
        self._follow(total, number, flags)
        if self.seen == 1:
            start += _SIZE.size
            if length < start:
                raise _damage("a fragment of a row event is too short for its fields")
            (self.size,) = _SIZE.unpack_from(head, start - _SIZE.size)
            if self.size > _EVENT_MOST:
                raise _not_supported(f"a row event in fragments has {self.size} bytes: over 4 GiB is not supported")
        self.held += length - start
        if self.held > self.size or (self.whole and self.held < self.size):
            raise _damage(f"the fragments of a row event hold {self.held} bytes instead of {self.size}")
        return start

    def _follow(self, total: int, number: int, flags: int) -> None:
        if not self.total:
            self.total = total
        if number != self.seen + 1 or total != self.total or number > total:
            raise _damage(
                f"fragment {number} of {total} of a row event is out of order: need {self.seen + 1} of {self.total}"
            )
        if flags & ~_SIZED:
            raise _not_supported(f"flags {flags:#x} of a fragment of a row event are not supported")
        if (flags == _SIZED) != (number == 1):
            raise _damage("the size of a row event must be in its first fragment, and only there")
        self.seen = number


def _damage(what: str) -> BinlogFormatError:
    return BinlogFormatError(
        what, hint=f"compare with mariadb-binlog --verify-binlog-checksum; restore the file or {LOAD_ALL_AGAIN}"
    )


def _not_supported(what: str) -> UnsupportedError:
    return UnsupportedError(what, hint=NEWER_LOADER)


def row_event(event: bytes) -> tuple[bytes, bool]:
    """Return the plain row event from the bytes of all fragments, and whether it was compressed.

    Raises:
        BinlogFormatError: the bytes are not a row event, or the length in its header is wrong.
    """
    if len(event) < HEADER + _ROWS_FIXED:
        raise _damage("the fragments of a row event are too short for its header")
    kind, header, body = event[4], event[:HEADER], event[HEADER:]
    if kind not in PLAIN_ROWS and kind not in PLAIN_ROWS.values():
        raise _damage(f"the fragments of a row event hold {event_name(kind)}, which is not a row event")
    length = int.from_bytes(header[9:13], "little")
    if length not in (len(event), (len(event) + _CHECKSUM) & _EVENT_MOST):
        raise _damage(f"the fragments of a row event hold {len(event)} bytes, but its header says {length}")
    if kind not in PLAIN_ROWS:
        return with_type(header, kind, body), False
    try:
        return uncompress_event(kind, header, body), True
    except LoaderError:
        return with_type(header, PLAIN_ROWS[kind], body), False
