"""Compressed events: MySQL's TRANSACTION_PAYLOAD and MariaDB's compressed row events and statements.

MySQL, `Transaction_payload_event`: fields of type, length and value (1: payload size; 2: compression, 0 zstd, 255 none;
3: uncompressed size; 0: end of the fields), then the events of a whole transaction, without checksums.

MariaDB, `log_event.cc` ("binlog_buf_compress"): an ordinary event whose row images or statement are a zlib stream. A
byte 0x80 | algorithm << 4 | length bytes and the uncompressed length (big-endian) precede the stream.

Memory is bounded: a payload is expanded in pieces of at most BLOCK bytes, and never beyond its stated size.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

import zstandard

from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import HEADER, QUERY, event_name
from loader.errors import NEWER_LOADER, BinlogFormatError, UnsupportedError

BLOCK = 1024 * 1024
"""Maximum bytes of one piece of an expanded payload."""

HEAD_MOST = 64
"""The fields of every payload lie within this many bytes."""

_TRANSACTION_PAYLOAD = 40
_QUERY_COMPRESSED = 165
_ZSTD, _NONE = 0, 255
_WINDOW_MOST = 1 << 27  # the largest zstd window of the compression levels that the server offers
_EVENT_MOST = 0xFFFFFFFF - 65536  # maximum bytes of row images or a statement: the length of an event has 32 bits
_QUERY_FIXED = 13
_ROWS_FIXED = 8
PLAIN_ROWS = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""Type of the plain row event for each type of compressed row event."""

_VERSION_2 = 30  # the first type of row events with extra data
_UPDATES = (167, 170)


def expand(kind: int, body: Iterable[bytes], header: bytes) -> Iterator[bytes]:
    """Yield the events inside a compressed event, as pieces of bytes. Each event has its header and no checksum.

    Args:
        kind: type of the compressed event.
        body: the bytes behind its header, without checksum, in pieces.
        header: its header.

    Raises:
        BinlogFormatError: the compressed bytes are damaged, or their size differs from the stated size.
        UnsupportedError: the compression is not supported.
    """
    if kind == _TRANSACTION_PAYLOAD:
        yield from _expand_payload(body)
    else:
        yield uncompress_event(kind, header, b"".join(body))


def uncompress_event(kind: int, header: bytes, body: bytes) -> bytes:
    """Return the plain event of a compressed MariaDB event, without checksum.

    Raises:
        BinlogFormatError, UnsupportedError: see `expand`.
    """
    head = _query_head(body) if kind == _QUERY_COMPRESSED else _rows_head(kind, body)
    content = body[:head] + _inflate(body[head:])
    plain = QUERY if kind == _QUERY_COMPRESSED else PLAIN_ROWS[kind]
    return with_type(header, plain, content)


def with_type(header: bytes, kind: int, content: bytes) -> bytes:
    """Return an event with this header, but with another type and body."""
    return header[:4] + bytes([kind]) + header[5:9] + struct.pack("<I", HEADER + len(content)) + header[13:] + content


def _query_head(body: bytes) -> int:
    """Return the bytes of a QUERY event's body before its statement."""
    cursor = Cursor(body)
    cursor.take(8)
    name = cursor.number(1)
    cursor.take(2)
    cursor.take(cursor.number(2))
    cursor.take(name + 1)
    return cursor.offset


def _rows_head(kind: int, body: bytes) -> int:
    """Return the bytes of a row event's body before its row images."""
    cursor = Cursor(body)
    cursor.take(_ROWS_FIXED)
    if PLAIN_ROWS[kind] >= _VERSION_2:
        cursor.take(max(cursor.number(2), 2) - 2)
    columns = cursor.length_encoded()
    cursor.take((columns + 7) // 8 * (2 if kind in _UPDATES else 1))
    return cursor.offset


def _inflate(data: bytes) -> bytes:
    cursor = Cursor(data)
    head = cursor.number(1)
    if head & 0xF0 != 0x80:
        raise UnsupportedError(
            f"compression algorithm {head >> 4 & 7} of a MariaDB event is not supported", hint=NEWER_LOADER
        )
    size = int.from_bytes(cursor.take(head & 7), "big")
    if size > _EVENT_MOST:
        raise BinlogFormatError("the stated size of a compressed event is beyond the limit", why=f"{size} bytes")
    machine = zlib.decompressobj()
    try:
        found = machine.decompress(cursor.take(cursor.remaining), size + 1)
    except zlib.error as error:
        raise BinlogFormatError("a compressed event cannot be decompressed", why=str(error)) from error
    if len(found) != size or not machine.eof or machine.unused_data:
        raise BinlogFormatError("the size of a decompressed event differs from its stated size")
    return found


def _expand_payload(body: Iterable[bytes]) -> Iterator[bytes]:
    pieces = iter(body)
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= HEAD_MOST:
            break
    start, stored, compression, size = _payload_fields(head)
    data = _take_exactly(head[start:], pieces, stored)
    if compression == _NONE:
        found: Iterator[bytes] = data
    elif compression == _ZSTD:
        found = _decompress_zstd(data)
    else:
        name = event_name(_TRANSACTION_PAYLOAD)
        raise UnsupportedError(f"compression {compression} of a {name} event is not supported", hint=NEWER_LOADER)
    total = 0
    for piece in found:
        total += len(piece)
        if total > size:
            break
        yield piece
    if total != size:
        raise BinlogFormatError("the size of a decompressed transaction differs from its stated size")


def _payload_fields(head: bytes) -> tuple[int, int, int, int]:
    """Return the offset of the payload, its size, compression and uncompressed size."""
    cursor = Cursor(head)
    values: dict[int, int] = {}
    while kind := cursor.length_encoded():
        value = Cursor(cursor.take(cursor.length_encoded()))
        values[kind] = value.length_encoded()
    if 1 not in values or 2 not in values:
        raise BinlogFormatError("a compressed transaction lacks its payload size or its compression")
    return cursor.offset, values[1], values[2], values.get(3, values[1])


def _take_exactly(first: bytes, rest: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield exactly `size` bytes, in pieces."""
    left = size - len(first)
    yield first
    for piece in rest:
        left -= len(piece)
        yield piece
    if left:
        raise BinlogFormatError("the payload size of a compressed transaction does not fit its event")


def _decompress_zstd(data: Iterator[bytes]) -> Iterator[bytes]:
    machine = zstandard.ZstdDecompressor(max_window_size=_WINDOW_MOST)
    try:
        with machine.stream_reader(_Pieces(data), read_across_frames=True) as reader:  # type: ignore[arg-type]
            while piece := reader.read(BLOCK):
                yield piece
    except zstandard.ZstdError as error:
        raise BinlogFormatError("a compressed transaction cannot be decompressed", why=str(error)) from error


class _Pieces:
    """Pieces of bytes as a file that zstandard can read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; no bytes at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found
