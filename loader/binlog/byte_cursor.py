"""A cursor over bytes, for events that are parsed once per file, table or statement (never per row)."""

from __future__ import annotations

from loader.errors import BinlogFormatError


class Cursor:
    """Reads little-endian integers and strings.

    Every method raises BinlogFormatError when fewer bytes remain than it needs. The error has no position: the caller
    adds it.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    @property
    def remaining(self) -> int:
        """Return the number of bytes that are not read yet."""
        return len(self.data) - self.offset

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if size < 0 or self.remaining < size:
            raise BinlogFormatError("an event ends before its last field")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def number(self, size: int) -> int:
        """Return the unsigned integer in the next `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def length_encoded(self) -> int:
        """Return a length-encoded integer (`int<lenenc>` of the client/server protocol)."""
        first = self.number(1)
        if first < 251:
            return first
        if first in (251, 255):
            raise BinlogFormatError("a length-encoded integer in an event starts with fb or ff")
        return self.number({252: 2, 253: 3, 254: 8}[first])

    def text(self, size: int) -> str:
        """Decode the next `size` bytes as UTF-8. Invalid bytes become surrogates: different names stay different."""
        return self.take(size).decode("utf-8", "surrogateescape")
