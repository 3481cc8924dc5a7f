"""Log files in a folder: of a server, or of an archive."""

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
    """Refuse a file of InnoDB pages, in which MariaDB can store its log from 12.3 on (MDEV-34705).

    Byte offsets are no positions there. Only GTIDs can follow that log.

    Raises:
        UnsupportedError: the file has InnoDB pages.
    """
    if file.endswith(PAGES):
        raise UnsupportedError(
            "the server stores its log in InnoDB, not in files of events",
            why="its binlog_storage_engine is set",
            hint=f"remove that option, so that the server writes log files again, and {LOAD_ALL_AGAIN}",
            file=file,
        )


def size_of(path: Path) -> int:
    """Return the bytes of log in a file, as positions count them.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as handle:
        return log_size(path.stat().st_size, handle.read(len(MAGIC)))


class FileTransport:
    """Reads `<folder>/<basename>.<number>`, and decrypts encrypted files with the keys."""

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
            UsageError: the file is encrypted, and the key is not configured, not found, or wrong.
        """
        try:
            with (self._folder / file).open("rb", buffering=0) as handle:
                yield plain(handle, file, self._keys, start)  # unbuffered: reads go directly into the caller's block
        except FileNotFoundError as error:
            raise self._gone(file) from error
        except OSError as error:
            hint = "let the user of the loader read the file (ls -l shows its rights), then run again"
            raise SourceUnavailable("a log file cannot be read", why=str(error), hint=hint, file=file) from error

    def size(self, file: str) -> int:
        """See Transport."""
        try:
            return size_of(self._folder / file)
        except FileNotFoundError as error:
            raise self._gone(file) from error

    def _gone(self, file: str) -> GapError:
        return GapError(
            "a log file that is still needed is gone",
            why=f"it is not in {self._folder}",
            hint=f"restore it from an archive, or {LOAD_ALL_AGAIN}",
            file=file,
        )
