"""The events of a window as bytes, in log order, with the contents of compressed events and of fragments."""

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
        kind: its type after expansion. It differs from the header's if a MariaDB server compressed or split the event.
        block: bytes that contain it. block[0] is byte `base` of the file, or of the expanded bytes.
        first: its offset in the block.
        size: bytes with header, without checksum.
    """

    header: EventHeader
    kind: int
    block: Block
    base: int
    first: int
    size: int

    def body(self, most: int | None = None) -> bytes:
        """Return the bytes after the header, or the first `most` of them."""
        end = self.first + self.size
        return bytes(
            self.block.data[self.first + HEADER : end if most is None else min(end, self.first + HEADER + most)]
        )


def pieces(log: LogBytes, window: Window) -> Iterator[Piece]:
    """Return every event of the window.

    Raises:
        BinlogFormatError: the file became shorter.
    """
    at, size = window.start, BLOCK
    while at < window.end:
        base = at
        block = log.block(base, min(size, window.end - base))
        size = BLOCK
        while (inside := PiecesAt(log, block, base, at)).taken:
            yield from inside
            at += inside.taken
        if at == base:
            size = 2 * len(block)


class PiecesAt:
    """The event at offset `at` of a file, or the events inside it. The block of bytes begins at offset `base`.

    Attributes:
        taken: bytes of the event in the file, with all fragments; 0 if it does not end in the block.

    Raises:
        BinlogFormatError: as pieces.
    """

    def __init__(self, log: LogBytes, block: Block, base: int, at: int) -> None:
        self.taken = 0
        self._pieces: Iterator[Piece] = iter(())
        if at + HEADER > base + len(block):
            return
        header = header_at(log.name, block, at - base, at)
        if header.type == PARTIAL_ROW_DATA:
            piece = _gathered(log, header)
            self.taken, self._pieces = piece.header.size, iter((piece,))
        elif at + header.size <= base + len(block):
            length = header.size - _checksum(header, log.form.checksum)
            outer = Piece(header, header.type, block, base, at - base, length)
            self.taken = header.size
            self._pieces = _expanded(outer) if CLASSES[header.type] == WRAPS else iter((outer,))

    def __iter__(self) -> Iterator[Piece]:
        return self._pieces


def header_at(file: str, block: Block, offset: int, position: int, inner: int = -1) -> EventHeader:
    """Return the header of the event at `offset` of a block; its offset in the file is `position`."""
    timestamp, kind, server, size, end, flags = _HEADER.unpack_from(block.data, offset)
    return EventHeader(file, position, timestamp, kind, server, size, end, flags, inner)


def _gathered(log: LogBytes, first: EventHeader) -> Piece:
    """Return the row event whose first fragment has that header."""
    expanded = log.expanded(first.position)
    event = np.frombuffer(bytearray(b"".join(expanded.pieces)), np.uint8)
    header = replace(first, size=expanded.end - first.position, end=expanded.end & 0xFFFFFFFF)
    return Piece(header, int(event[4]), event, 0, 0, len(event))


def _checksum(header: EventHeader, usual: int) -> int:
    """Return the bytes of checksum; a format description has 4 also if its algorithm is none."""
    if header.type == FORMAT_DESCRIPTION:
        return 4 if header.size > HEADER + OLD_FORMAT else 0
    return usual


def _expanded(outer: Piece) -> Iterator[Piece]:
    """Yield the event of a compressed transaction and its inner events, or the plain form of a compressed event."""
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
