"""Log files in a folder: a server's own, or an archive of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loader.errors import BinlogFormatError, GapError, SourceUnavailable
from loader.model.position import Interval
from loader.transport.base import LogFile


class FileTransport:
    """Reads `<folder>/<basename>.<number>`."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def segments(self, interval: Interval) -> list[tuple[str, int, int]]:
        """See Transport."""
        start, stop = interval.start, interval.stop
        found = []
        for lognum in range(start.lognum, stop.lognum + 1):
            file = f"{start.basename}.{lognum:06d}"
            size = self._size(file)
            begin = start.logpos if lognum == start.lognum else 4
            end = stop.logpos if lognum == stop.lognum else size
            if end > size:
                raise BinlogFormatError(
                    "the log file ends before the interval does", file=file, size=size, position=end
                )
            found.append((file, begin, end))
        return found

    @contextmanager
    def open(self, file: str, start: int, stop: int) -> Iterator[LogFile]:
        """See Transport: the file itself."""
        try:
            with (self._folder / file).open("rb", buffering=0) as handle:
                yield handle  # unbuffered: reads go straight into the caller's block
        except FileNotFoundError as error:
            raise self._gone(file) from error
        except OSError as error:
            raise SourceUnavailable("a log file cannot be read", why=str(error), file=file) from error

    def _size(self, file: str) -> int:
        try:
            return (self._folder / file).stat().st_size
        except FileNotFoundError as error:
            raise self._gone(file) from error

    def _gone(self, file: str) -> GapError:
        return GapError(
            "a log file that is still needed is gone",
            why=f"there is none in {self._folder}",
            hint="restore it from an archive, or load the tables again",
            file=file,
        )
