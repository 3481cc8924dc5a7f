"""A cursor over bytes for the events that are read once per file, table or statement, not per row."""

from __future__ import annotations

from loader.errors import BinlogFormatError


class Cursor:
    """Reads little-endian numbers and strings; running over the end is a BinlogFormatError without a place."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    @property
    def remaining(self) -> int:
        """Bytes not yet read."""
        return len(self.data) - self.offset

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size < 0 or self.remaining < size:
            raise BinlogFormatError("an event ends before its content does")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def number(self, size: int) -> int:
        """An unsigned integer."""
        return int.from_bytes(self.take(size), "little")

    def length_encoded(self) -> int:
        """A length-encoded integer (the protocol's `int<lenenc>`)."""
        first = self.number(1)
        if first < 251:
            return first
        if first in (251, 255):
            raise BinlogFormatError("a length in an event is not a length")
        return self.number({252: 2, 253: 3, 254: 8}[first])

    def text(self, size: int) -> str:
        """UTF-8 names; bytes that are not UTF-8 are kept as surrogates so that they stay distinct."""
        return self.take(size).decode("utf-8", "surrogateescape")
