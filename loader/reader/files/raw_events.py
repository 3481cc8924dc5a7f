"""The events of a window as bytes, in their order, those of compressed events and of fragments among them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from loader.binlog.constants import CLASSES, FORMAT_DESCRIPTION, HEADER, PARTIAL_ROW_DATA, WRAPS
from loader.binlog.events.compressed_events import HEAD_MOST, expand
from loader.reader.event_bodies import OLD_FORMAT
from loader.reader.events import EventHeader
from loader.reader.files.log_walk import BLOCK, Block, LogBytes
from loader.reader.files.window import Window

_HEADER = struct.Struct("<IBIIIH")
_PAYLOAD = 40


@dataclass(frozen=True)
class Piece:
    """One event in a block of bytes.

    Attributes:
        kind: its type once it is expanded; that of the header unless a MariaDB server compressed it or wrote fragments.
        block: bytes that hold it, the first of them being byte `base` of the file, or of what was expanded.
        first: where in the block it starts.
        size: its bytes with header and without checksum.
    """

    header: EventHeader
    kind: int
    block: Block
    base: int
    first: int
    size: int

    def body(self, most: int | None = None) -> bytes:
        """What stands behind the header, or its first `most` bytes."""
        end = self.first + self.size
        return bytes(
            self.block.data[self.first + HEADER : end if most is None else min(end, self.first + HEADER + most)]
        )


def pieces(log: LogBytes, window: Window) -> Iterator[Piece]:
    """Every event of the window.

    Raises:
        BinlogFormatError: the log became shorter.
    """
    at, size = window.start, BLOCK
    while at < window.end:
        base = at
        block = log.block(base, min(size, window.end - base))
        size = BLOCK
        while at + HEADER <= base + len(block):
            header = header_at(log.name, block, at - base, at)
            if header.type == PARTIAL_ROW_DATA:
                piece = _gathered(log, header)
                yield piece
                at += piece.header.size
                continue
            if at + header.size > base + len(block):
                break
            length = header.size - _checksum(header, log.form.checksum)
            outer = Piece(header, header.type, block, base, at - base, length)
            if CLASSES[header.type] == WRAPS:
                yield from _expanded(outer)
            else:
                yield outer
            at += header.size
        if at == base:
            size = 2 * len(block)


def header_at(file: str, block: Block, offset: int, position: int, inner: int = -1) -> EventHeader:
    """The header of the event at `offset` of a block, which stands at `position` of the file."""
    timestamp, kind, server, size, end, flags = _HEADER.unpack_from(block.data, offset)
    return EventHeader(file, position, timestamp, kind, server, size, end, flags, inner)


def _gathered(log: LogBytes, first: EventHeader) -> Piece:
    """The row event of which the first fragment has that header."""
    expanded = log.expanded(first.position)
    event = np.frombuffer(bytearray(b"".join(expanded.pieces)), np.uint8)
    header = replace(first, size=expanded.end - first.position, end=expanded.end & 0xFFFFFFFF)
    return Piece(header, int(event[4]), event, 0, 0, len(event))


def _checksum(header: EventHeader, usual: int) -> int:
    """Bytes behind the body; a format description has them whatever its algorithm."""
    if header.type == FORMAT_DESCRIPTION:
        return 4 if header.size > HEADER + OLD_FORMAT else 0
    return usual


def _expanded(outer: Piece) -> Iterator[Piece]:
    """A compressed transaction's own event and then its inner ones, or the plain form of a compressed event."""
    header = outer.header
    raw = bytes(outer.block.data[outer.first : outer.first + HEADER])
    payload = header.type == _PAYLOAD
    if payload:
        yield Piece(header, header.type, outer.block, outer.base, outer.first, min(outer.size, HEADER + HEAD_MOST))
    rest, base = b"", 0
    for piece in expand(header.type, [outer.body()], raw):
        data = np.frombuffer(bytearray(rest + piece), np.uint8)
        at = 0
        while at + HEADER <= len(data):
            inner = header_at(header.file, data, at, header.position, base + at)
            if at + inner.size > len(data):
                break
            yield Piece(inner if payload else header, inner.type, data, base, at, inner.size)
            at += inner.size
        rest, base = data[at:].tobytes(), base + at
