"""A transport over listed log files, for example those of a server's index file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from loader.errors import GapError
from loader.model.position import Interval
from loader.reader.files.log_files import LogFiles
from loader.transport.base import LogFile
from loader.transport.segments import segments


class ListedTransport:
    """Reads listed files, in any folders."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files

    def segments(self, interval: Interval) -> list[tuple[str, int, int]]:
        """See Transport."""
        return segments(interval, self._sizes())

    def size(self, file: str) -> int:
        """See Transport."""
        return self._sizes()(file)

    def open(self, file: str, start: int, stop: int) -> AbstractContextManager[LogFile]:
        """See Transport."""
        return self._files.open(file, start, stop)

    def _sizes(self) -> Callable[[str], int]:
        sizes = {file.name: file.size for file in self._files.listed()}

        def size_of(file: str) -> int:
            if file not in sizes:
                raise GapError(
                    "a log file that is still needed is gone",
                    why=f"the files are {min(sizes)} to {max(sizes)}" if sizes else "no file is listed",
                    hint="restore it from an archive, or load the tables again",
                    file=file,
                )
            return sizes[file]

        return size_of
