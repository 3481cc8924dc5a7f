"""Row events that MariaDB 12.3 and later writes in fragments, as PARTIAL_ROW_DATA events one behind the other.

Format: MariaDB, `log_event_server.cc` ("Rows_log_event_fragmenter", MDEV-32570): number of fragments 4, number of this
one 4 (from 1 on), flags 1, with flag 1 (on the first only) bytes of the row event 8; then some of those bytes, in their
order: header, post-header, columns, row images, and no checksum, though the length in that header counts one where the
server writes them.

With `log_bin_compress` the server gives such an event the type of a compressed one and leaves its images as they are
(MDEV-40768; closed in 12.3.3). So it is found by looking whether they are: compressed ones are one zlib stream to their
end, as long as it says and with a check.
"""

from __future__ import annotations

import struct

from loader.binlog.constants import HEADER, PARTIAL_ROW_DATA, event_name
from loader.binlog.events.compressed_events import PLAIN_ROWS, uncompress_event, with_type
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, LoaderError, UnsupportedError

HEAD_MOST = HEADER + 17
"""Bytes of a fragment's event that hold all its fields."""

_FIELDS = struct.Struct("<IIB")
_SIZED = 1
_SIZE = struct.Struct("<Q")
_EVENT_MOST = 0xFFFFFFFF  # the length of an event has 32 bits
_CHECKSUM = 4
_ROWS_FIXED = 8


class Group:
    """The fragments of one row event, each checked against those before it.

    Attributes:
        total: how many there are, 0 before the first.
        seen: how many were added.
        size: bytes of the row event.
        held: bytes of it in the fragments that were added.
    """

    def __init__(self) -> None:
        self.total = self.seen = self.size = self.held = 0

    @property
    def whole(self) -> bool:
        """Whether the last fragment was added."""
        return self.seen > 0 and self.seen == self.total

    def add(self, head: bytes, checksum: int) -> int:
        """Add a fragment by the first bytes of its event, HEAD_MOST or all; where in it those of the row event start.

        Raises:
            BinlogFormatError: it is not the one that comes next, or sizes do not add up.
            UnsupportedError: flags that are not known, or a row event that is larger than an event can be.
        """
        if head[4] != PARTIAL_ROW_DATA:
            raise _damage(
                f"a row event lacks fragments: {self.seen} of {self.total} stand before {event_name(head[4])}"
            )
        length = int.from_bytes(head[9:13], "little") - checksum
        start = HEADER + _FIELDS.size
        if length < start:
            raise _damage("a fragment of a row event is too short to be one")
        total, number, flags = _FIELDS.unpack_from(head, HEADER)
        self._follow(total, number, flags)
        if self.seen == 1:
            start += _SIZE.size
            if length < start:
                raise _damage("a fragment of a row event is too short to be one")
            (self.size,) = _SIZE.unpack_from(head, start - _SIZE.size)
            if self.size > _EVENT_MOST:
                raise _not_covered(f"fragments are of a row event of {self.size} bytes, and 4 GiB are not covered")
        self.held += length - start
        if self.held > self.size or (self.whole and self.held < self.size):
            raise _damage(f"fragments hold {self.held} bytes of a row event of {self.size}")
        return start

    def _follow(self, total: int, number: int, flags: int) -> None:
        if not self.total:
            self.total = total
        if number != self.seen + 1 or total != self.total or number > total:
            raise _damage(
                f"fragment {number} of {total} of a row event stands where {self.seen + 1} of {self.total} must"
            )
        if flags & ~_SIZED:
            raise _not_covered(f"flags {flags:#x} of a fragment of a row event are not known")
        if (flags == _SIZED) != (number == 1):
            raise _damage("the first fragment of a row event, and no other, says how large it is")
        self.seen = number


def _damage(what: str) -> BinlogFormatError:
    return BinlogFormatError(
        what, hint=f"compare with mariadb-binlog --verify-binlog-checksum; restore the file or {LOAD_ALL_AGAIN}"
    )


def _not_covered(what: str) -> UnsupportedError:
    return UnsupportedError(what, hint=f"nothing was applied; use a loader version that covers it, or {LOAD_ALL_AGAIN}")


def row_event(event: bytes) -> tuple[bytes, bool]:
    """The row event from all its fragments, with its plain type and length; and whether it was compressed.

    Raises:
        BinlogFormatError: it is no row event, or not as long as its header says.
    """
    if len(event) < HEADER + _ROWS_FIXED:
        raise _damage("fragments hold too little to be a row event")
    kind, header, body = event[4], event[:HEADER], event[HEADER:]
    if kind not in PLAIN_ROWS and kind not in PLAIN_ROWS.values():
        raise _damage(f"fragments hold {event_name(kind)}, which is no row event")
    length = int.from_bytes(header[9:13], "little")
    if length not in (len(event), (len(event) + _CHECKSUM) & _EVENT_MOST):
        raise _damage(f"fragments hold {len(event)} bytes of a row event that says to have {length}")
    if kind not in PLAIN_ROWS:
        return with_type(header, kind, body), False
    try:
        return uncompress_event(kind, header, body), True
    except LoaderError:
        return with_type(header, PLAIN_ROWS[kind], body), False
