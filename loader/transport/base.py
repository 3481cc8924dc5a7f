"""Protocols of transports, which provide the bytes of log files."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from loader.errors import DataError, LoaderError, RetryableError
from loader.model.position import Interval

Segment = tuple[str, int, int]
"""A range of a log file: its name, the first byte, and the byte after the last."""


class ServerCannotTell(LoaderError):
    """The server did not answer the question for a position, or answered without a position."""


class NoPlace(ServerCannotTell):
    """The server was not asked, or answered without a position. Its log may have the transactions anyway."""


class AnonymousRefused(DataError):
    """MySQL does not send a transaction without a GTID while its gtid_mode is ON."""


class LogLags(RetryableError):
    """A log file has fewer bytes than the server wrote: the mount or the copy of it lags."""


class LogFile(Protocol):
    """An open log file."""

    def seek(self, offset: int, /) -> object:
        """Move to a byte of the file."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most `size` bytes from there on."""

    def readinto(self, block: memoryview, /) -> int | None:
        """Fill the block with one read, and return the number of bytes; 0 at the end."""


class Opens(Protocol):
    """Opens log files by name."""

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """Open a log file. Its first event and the bytes from `start` to `stop` are readable at their offsets.

        Raises:
            GapError: the file is gone.
            SourceUnavailable: the server or the disk cannot provide it now.
        """


class Transport(Opens, Protocol):
    """Log files of one server, by name."""

    def segments(self, interval: Interval) -> list[Segment]:
        """Return the range of each log file of the interval, in order. A file before the last ends at its size.

        Raises:
            GapError: a file is missing.
            LogLags: the last file is shorter than the interval, as a copy can be.
            BinlogFormatError: the last file is shorter than the interval on the server itself.
        """

    def size(self, file: str) -> int:
        """Return the bytes of log in a file.

        Raises:
            GapError: the file is missing.
        """
