"""A log file on local disk that is read while another thread still fills it."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Condition, Thread
from typing import BinaryIO

from loader.errors import LOAD_ALL_AGAIN, GapError, StoreUnavailable


class Spool:
    """Bytes of a log file at their offsets. The reader waits for bytes that the filler has not written yet.

    Attributes:
        ready: the spool is complete up to this offset.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._descriptor = file.fileno()
        self._changed = Condition()
        self._at = 0
        self._error: BaseException | None = None
        self._thread: Thread | None = None
        self._stop = 0
        self.ready = 0

    def write(self, offset: int, data: bytes, ready: int | None = None) -> None:
        """Write bytes at an offset, in the filler thread. Then the spool is complete up to their end, or up to `ready`.

        The same bytes may be written again.

        Raises:
            StoreUnavailable: the disk cannot hold the bytes.
            GapError: bytes that are written again differ.
        """
        end = offset
        known = data[: max(0, self.ready - offset)]
        if known and os.pread(self._descriptor, len(known), offset) != known:
            raise GapError(
                "the server sends another log since the connection broke",
                hint=f"check whether the log was reset or another server has this address, then {LOAD_ALL_AGAIN}",
                position=offset,
            )
        view = memoryview(data)
        try:
            while view:
                size = os.pwrite(self._descriptor, view, end)
                view, end = view[size:], end + size
        except OSError as error:
            raise StoreUnavailable(
                "the log cannot be written to the local disk",
                why=str(error),
                hint="free space in the folder for temporary files (TMPDIR), or set transport to file",
            ) from error
        with self._changed:
            self.ready = max(self.ready, end if ready is None else ready)
            self._changed.notify()

    def fill(self, work: Callable[[Spool], None], stop: int) -> None:
        """Let a thread fill the spool up to the offset `stop`. The reader raises the exceptions of the thread."""

        def run() -> None:
            try:
                work(self)
            except BaseException as error:  # it is raised in the thread of the reader
                self._error = error
            with self._changed:
                self.ready = max(self.ready, stop) if self._error is None else self.ready
                self._changed.notify()

        self._stop = stop
        self._thread = Thread(target=run, name="spool", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the filler to end."""
        if self._thread:
            self._thread.join()

    def seek(self, offset: int, /) -> int:
        """See LogFile."""
        self._at = offset
        return offset

    def read(self, size: int, /) -> bytes:
        """See LogFile."""
        data = os.pread(self._descriptor, self._room(size), self._at)
        self._at += len(data)
        return data

    def readinto(self, block: memoryview, /) -> int:
        """See LogFile."""
        size = os.preadv(self._descriptor, [block[: self._room(len(block))]], self._at)
        self._at += size
        return size

    def _room(self, size: int) -> int:
        """Return how many bytes can be read next, after waiting for the first; 0 at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self.ready > self._at or self._error is not None or self.ready >= self._stop)
            if self._error is not None and self.ready <= self._at:
                raise self._error
            return max(0, min(size, self.ready - self._at))
