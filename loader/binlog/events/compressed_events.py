"""Events that carry other events compressed: MySQL's TRANSACTION_PAYLOAD and MariaDB's compressed events.

Formats: MySQL, `Transaction_payload_event`: fields of type, length, value (1 payload size, 2 compression: 0 zstd, 255
none, 3 uncompressed size, 0 the end of the fields), then the events of a whole transaction, without checksums. MariaDB,
`log_event.cc` ("binlog_buf_compress"): an ordinary event whose rows or statement are zlib's, behind a byte of
0x80 | algorithm << 4 | bytes of the length, and that length, big-endian.

Bounds: a payload is expanded in pieces of at most BLOCK bytes and never past its stated size.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

import zstandard

from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import HEADER, QUERY, event_name
from loader.errors import BinlogFormatError, UnsupportedError

BLOCK = 1024 * 1024
"""Bytes of a piece of an expanded payload, at most."""

HEAD_MOST = 64
"""Bytes that hold every payload's fields."""

_TRANSACTION_PAYLOAD = 40
_QUERY_COMPRESSED = 165
_ZSTD, _NONE = 0, 255
_WINDOW_MOST = 1 << 27  # the most that the server's own compression levels ask for
_EVENT_MOST = 0xFFFFFFFF - 65536  # bytes of rows or a statement: the length of an event has 32 bits
_QUERY_FIXED = 13
_ROWS_FIXED = 8
PLAIN_ROWS = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""Types of compressed row events, and of what they were made from."""

_VERSION_2 = 30  # the first type of row events with extra data
_UPDATES = (167, 170)


def expand(kind: int, body: Iterable[bytes], header: bytes) -> Iterator[bytes]:
    """The events in an event of that type, as pieces of bytes, each event with its header and without checksum.

    Args:
        kind: the type of the outer event.
        body: the bytes behind its header, without checksum, in pieces.
        header: its header.

    Raises:
        BinlogFormatError: sizes that are not what was stated, or bytes that are not of the compression.
        UnsupportedError: another compression.
    """
    if kind == _TRANSACTION_PAYLOAD:
        yield from _payload(body)
    else:
        yield uncompress_event(kind, header, b"".join(body))


def uncompress_event(kind: int, header: bytes, body: bytes) -> bytes:
    """MariaDB's compressed event as the one it was made from.

    Raises:
        BinlogFormatError, UnsupportedError: see `expand`.
    """
    head = _query_head(body) if kind == _QUERY_COMPRESSED else _rows_head(kind, body)
    content = body[:head] + _inflated(body[head:])
    plain = QUERY if kind == _QUERY_COMPRESSED else PLAIN_ROWS[kind]
    return with_type(header, plain, content)


def with_type(header: bytes, kind: int, content: bytes) -> bytes:
    """An event with that header but another type and body."""
    return header[:4] + bytes([kind]) + header[5:9] + struct.pack("<I", HEADER + len(content)) + header[13:] + content


def _query_head(body: bytes) -> int:
    """Bytes of a QUERY event before its statement."""
    cursor = Cursor(body)
    cursor.take(8)
    name = cursor.number(1)
    cursor.take(2)
    cursor.take(cursor.number(2))
    cursor.take(name + 1)
    return cursor.offset


def _rows_head(kind: int, body: bytes) -> int:
    """Bytes of a row event before its images."""
    cursor = Cursor(body)
    cursor.take(_ROWS_FIXED)
    if PLAIN_ROWS[kind] >= _VERSION_2:
        cursor.take(max(cursor.number(2), 2) - 2)
    columns = cursor.length_encoded()
    cursor.take((columns + 7) // 8 * (2 if kind in _UPDATES else 1))
    return cursor.offset


def _inflated(data: bytes) -> bytes:
    cursor = Cursor(data)
    head = cursor.number(1)
    if head & 0xF0 != 0x80:
        raise UnsupportedError(f"compression {head >> 4 & 7} of MariaDB's events is not known")
    size = int.from_bytes(cursor.take(head & 7), "big")
    if size > _EVENT_MOST:
        raise BinlogFormatError("a compressed event says to be larger than an event can be", why=f"{size} bytes")
    machine = zlib.decompressobj()
    try:
        found = machine.decompress(cursor.take(cursor.remaining), size + 1)
    except zlib.error as error:
        raise BinlogFormatError("a compressed event cannot be expanded", why=str(error)) from error
    if len(found) != size or not machine.eof or machine.unused_data:
        raise BinlogFormatError("a compressed event is not as long as it says")
    return found


def _payload(body: Iterable[bytes]) -> Iterator[bytes]:
    pieces = iter(body)
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= HEAD_MOST:
            break
    start, stored, compression, size = _payload_fields(head)
    data = _limited(head[start:], pieces, stored)
    if compression == _NONE:
        found: Iterator[bytes] = data
    elif compression == _ZSTD:
        found = _unzstd(data)
    else:
        raise UnsupportedError(f"compression {compression} of a {event_name(_TRANSACTION_PAYLOAD)} event is not known")
    total = 0
    for piece in found:
        total += len(piece)
        if total > size:
            break
        yield piece
    if total != size:
        raise BinlogFormatError("a compressed transaction is not as long as it says")


def _payload_fields(head: bytes) -> tuple[int, int, int, int]:
    """Where the payload starts, its size, compression and uncompressed size."""
    cursor = Cursor(head)
    values: dict[int, int] = {}
    while kind := cursor.length_encoded():
        value = Cursor(cursor.take(cursor.length_encoded()))
        values[kind] = value.length_encoded()
    if 1 not in values or 2 not in values:
        raise BinlogFormatError("a compressed transaction does not say how it is compressed")
    return cursor.offset, values[1], values[2], values.get(3, values[1])


def _limited(first: bytes, rest: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Exactly `size` bytes, in pieces."""
    left = size - len(first)
    yield first
    for piece in rest:
        left -= len(piece)
        yield piece
    if left:
        raise BinlogFormatError("a compressed transaction does not fit into its event")


def _unzstd(data: Iterator[bytes]) -> Iterator[bytes]:
    machine = zstandard.ZstdDecompressor(max_window_size=_WINDOW_MOST)
    try:
        with machine.stream_reader(_Pieces(data), read_across_frames=True) as reader:  # type: ignore[arg-type]
            while piece := reader.read(BLOCK):
                yield piece
    except zstandard.ZstdError as error:
        raise BinlogFormatError("a compressed transaction cannot be expanded", why=str(error)) from error


class _Pieces:
    """Pieces as a file that zstandard reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found
