"""Log files in a folder: a server's own, or an archive of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loader.binlog.constants import MAGIC
from loader.errors import LOAD_ALL_AGAIN, GapError, SourceUnavailable, UnsupportedError
from loader.model.position import Interval
from loader.transport.base import LogFile
from loader.transport.decrypted import log_size, plain
from loader.transport.keys import NO_KEYS, KeyFiles
from loader.transport.segments import segments

PAGES = ".ibb"


def refuse_pages(file: str) -> None:
    """Raise UnsupportedError for a file of InnoDB pages, which MariaDB can keep its log in from 12.3 on (MDEV-34705).

    No byte offset is a position there: such a log is followed by GTIDs alone.
    """
    if file.endswith(PAGES):
        raise UnsupportedError(
            "the server keeps its log inside InnoDB, not in files of events",
            why="its binlog_storage_engine is set",
            hint=f"take that option away, so that the server writes log files again, and {LOAD_ALL_AGAIN}",
            file=file,
        )


def size_of(path: Path) -> int:
    """Bytes of the log in a file, as the positions in it count them. Raises OSError."""
    with path.open("rb") as handle:
        return log_size(path.stat().st_size, handle.read(len(MAGIC)))


class FileTransport:
    """Reads `<folder>/<basename>.<number>`, with the keys of those that are encrypted."""

    def __init__(self, folder: str, keys: KeyFiles = NO_KEYS) -> None:
        self._folder = Path(folder)
        self._keys = keys

    def segments(self, interval: Interval) -> list[tuple[str, int, int]]:
        """See Transport."""
        return segments(interval, self.size)

    @contextmanager
    def open(self, file: str, start: int, stop: int) -> Iterator[LogFile]:
        """See Transport: the file itself, decrypted.

        Raises:
            UsageError: it is encrypted, and the key is not given, not found, or wrong.
        """
        try:
            with (self._folder / file).open("rb", buffering=0) as handle:
                yield plain(handle, file, self._keys, start)  # unbuffered: reads go straight into the caller's block
        except FileNotFoundError as error:
            raise self._gone(file) from error
        except OSError as error:
            raise SourceUnavailable("a log file cannot be read", why=str(error), file=file) from error

    def size(self, file: str) -> int:
        """See Transport."""
        try:
            return size_of(self._folder / file)
        except FileNotFoundError as error:
            raise self._gone(file) from error

    def _gone(self, file: str) -> GapError:
        return GapError(
            "a log file that is still needed is gone",
            why=f"there is none in {self._folder}",
            hint=f"restore it from an archive, or {LOAD_ALL_AGAIN}",
            file=file,
        )
