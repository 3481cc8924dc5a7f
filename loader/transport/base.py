"""Where the bytes of a log come from."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from loader.errors import LoaderError, RetryableError
from loader.model.position import Interval

Segment = tuple[str, int, int]
"""Bytes of a log file: its name, the first byte, and the one behind the last."""


class ServerCannotTell(LoaderError):
    """The server has no answer where a place in its log is asked for, or the answer is no place."""


class NoPlace(ServerCannotTell):
    """The server is not asked, or its answer is no place; its log may have the transactions all the same."""


class LogLags(RetryableError):
    """A log file has fewer bytes here than the server wrote: a mount or a copy of it is behind."""


class LogFile(Protocol):
    """An open log file."""

    def seek(self, offset: int, /) -> object:
        """Go to a byte of it."""

    def read(self, size: int, /) -> bytes | None:
        """At most so many bytes from there on."""

    def readinto(self, block: memoryview, /) -> int | None:
        """Fill as much of the block as one read gives; 0 at the end."""


class Opens(Protocol):
    """Log files that are opened by name."""

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """A log file; its first event and the bytes from `start` to `stop` can be read at their own offsets.

        Raises:
            GapError: the file is gone.
            SourceUnavailable: the server or the disk does not give it now.
        """


class Transport(Opens, Protocol):
    """Log files of one server, by name."""

    def segments(self, interval: Interval) -> list[Segment]:
        """The interval as (file, first byte, end byte) of each log file, in order.

        The end of a file before the last is its size. Raises GapError when a file is missing, LogLags when the last
        one is shorter than the interval, or BinlogFormatError when it is so on the server itself.
        """

    def size(self, file: str) -> int:
        """Bytes of log in a file. Raises GapError when it is missing."""
