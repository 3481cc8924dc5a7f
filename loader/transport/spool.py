"""A log file on local disk that is read while another thread still fills it."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Condition, Thread
from typing import BinaryIO

from loader.errors import LOAD_ALL_AGAIN, GapError, StoreUnavailable


class Spool:
    """Bytes of a log file at their own offsets. Its reader waits for bytes that the filler has not written yet.

    Attributes:
        ready: every byte that will ever be there below this offset is there.
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
        """Put bytes at an offset, by the filler; with them all is there below their end, or below `ready`.

        Bytes that are there already may be put again.

        Raises:
            StoreUnavailable: the disk does not take them.
            GapError: what is put again is not what is there.
        """
        end = offset
        known = data[: max(0, self.ready - offset)]
        if known and os.pread(self._descriptor, len(known), offset) != known:
            raise GapError(
                "the server sends another log than before the connection broke",
                hint=f"was it reset, or is another server behind this address? Look, then {LOAD_ALL_AGAIN}",
                position=offset,
            )
        view = memoryview(data)
        try:
            while view:
                size = os.pwrite(self._descriptor, view, end)
                view, end = view[size:], end + size
        except OSError as error:
            raise StoreUnavailable(
                "the log cannot be kept on local disk",
                why=str(error),
                hint="give the folder for temporary files (TMPDIR) more room, or read log files (transport = file)",
            ) from error
        with self._changed:
            self.ready = max(self.ready, end if ready is None else ready)
            self._changed.notify()

    def fill(self, work: Callable[[Spool], None], stop: int) -> None:
        """Let a thread fill the spool up to the offset `stop`; what it raises, the reader raises."""

        def run() -> None:
            try:
                work(self)
            except BaseException as error:  # it is raised in the reader's thread
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
        """How many of the next bytes can be read, once there are any; 0 at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self.ready > self._at or self._error is not None or self.ready >= self._stop)
            if self._error is not None and self.ready <= self._at:
                raise self._error
            return max(0, min(size, self.ready - self._at))
