"""Stores over a network, with one retry policy for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import SEEK_END, SEEK_SET, BufferedReader, RawIOBase, UnsupportedOperation
from tempfile import SpooledTemporaryFile
from typing import IO, Any, BinaryIO, Protocol, TypeVar, cast

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from loader.errors import StoreUnavailable
from loader.store.base import ObjectInfo, Page, require_key

_ATTEMPTS = 9
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 20
_IN_MEMORY = 64 * 1024  # bytes of an object in memory before it goes to disk; an interval can have many tables
_RANGE_BYTES = 8 * 1024 * 1024
_Result = TypeVar("_Result")


class Remote(Protocol):
    """A store over a network without retries. Each call is one try, and can be repeated after StoreUnavailable."""

    root: str

    def creating(self, key: str, data: bytes) -> Callable[[], bool]:
        """Return the function that tries one create. It is called until a try gets an answer.

        The function returns True if this create wrote the object, also if the reply to an earlier try was lost, and
        False if another create wrote it.
        """

    def put(self, key: str, file: IO[bytes]) -> None:
        """Write or replace an object with the content of a file, atomically."""

    def get(self, key: str) -> bytes:
        """See Store."""

    def get_range(self, key: str, start: int, stop: int) -> bytes:
        """Return the bytes from `start` to `stop` of an object, fewer if it ends before.

        Raises:
            ObjectNotFound: there is no such object.
        """

    def list(self, prefix: str) -> tuple[ObjectInfo, ...]:
        """See Store."""

    def folders(self, prefix: str) -> tuple[str, ...]:
        """See Store."""

    def folders_after(self, prefix: str, after: str) -> Page:
        """See Store."""

    def delete(self, key: str) -> None:
        """See Store."""

    def remove(self, prefix: str) -> None:
        """See Store."""

    def uri(self, key: str) -> str:
        """See Store."""


class RemoteStore:
    """A remote store with retries.

    A call is tried nine times, with pauses of half a minute in total, before it raises StoreUnavailable. An object is
    read range by range, with one range in memory. An object that is written in blocks is collected on local disk. So
    it can be sent again, and memory does not grow with the number of tables that are written at the same time.
    """

    def __init__(self, remote: Remote, attempts: int = _ATTEMPTS) -> None:
        self._remote = remote
        self._attempts = attempts
        self.root = remote.root

    def create(self, key: str, data: bytes) -> bool:
        """See Store."""
        return self._repeated(self._remote.creating(require_key(key), data))

    @contextmanager
    def writing(self, key: str) -> Iterator[_Spool]:
        """See Store."""
        require_key(key)
        with SpooledTemporaryFile(_IN_MEMORY) as file:
            spool = _Spool(file, key)
            yield spool
            spool.flush()
            self._repeated(lambda: self._remote.put(key, file))

    def get(self, key: str) -> bytes:
        """See Store."""
        require_key(key)
        return self._repeated(lambda: self._remote.get(key))

    @contextmanager
    def reading(self, key: str) -> Iterator[BinaryIO]:
        """See Store: reads one range after the other, each with its own retries."""
        require_key(key)
        with BufferedReader(_Ranges(lambda start, stop: self._range(key, start, stop)), _RANGE_BYTES) as file:
            file.peek(1)  # so that a missing object is an error now
            yield cast("BinaryIO", file)

    def _range(self, key: str, start: int, stop: int) -> bytes:
        return self._repeated(lambda: self._remote.get_range(key, start, stop))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See Store."""
        require_key(prefix.rstrip("/"))
        return iter(self._repeated(lambda: self._remote.list(prefix)))

    def folders(self, prefix: str) -> tuple[str, ...]:
        """See Store."""
        require_key(prefix.rstrip("/"))
        return self._repeated(lambda: self._remote.folders(prefix))

    def folders_after(self, prefix: str, after: str) -> Page:
        """See Store."""
        require_key(prefix.rstrip("/"))
        return self._repeated(lambda: self._remote.folders_after(prefix, after))

    def delete(self, key: str) -> None:
        """See Store."""
        require_key(key)
        self._repeated(lambda: self._remote.delete(key))

    def remove(self, prefix: str) -> None:
        """See Store."""
        require_key(prefix.rstrip("/"))
        self._repeated(lambda: self._remote.remove(prefix))

    def uri(self, key: str) -> str:
        """See Store."""
        return self._remote.uri(key)

    def _repeated(self, attempt: Callable[[], _Result]) -> _Result:
        return repeated(attempt, self._attempts)


def repeated(attempt: Callable[[], _Result], attempts: int = _ATTEMPTS) -> _Result:
    """Return the result of the first try that does not raise StoreUnavailable; after the last one, raise it."""
    retrying = Retrying(
        retry=retry_if_exception_type(StoreUnavailable),
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS),
        reraise=True,
    )
    return retrying(attempt)


class _Ranges(RawIOBase):
    """The bytes of an object, fetched range by range. The stream is read forward, and can be positioned."""

    def __init__(self, get: Callable[[int, int], bytes]) -> None:
        self._get = get
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True; positions from the end are refused, because the size is not known."""
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Move to a position from the beginning or from the current one."""
        if whence == SEEK_END:
            raise UnsupportedOperation("the size of the object is not known")
        self._at = offset if whence == SEEK_SET else self._at + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, or a part of it at the end of the object."""
        found = self._get(self._at, self._at + len(buffer))
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


class _Spool:
    """An object on local disk, on its way to the store."""

    def __init__(self, file: IO[bytes], key: str) -> None:
        self._file = file
        self._key = key

    def write(self, block: bytes | memoryview) -> int:
        """Append the block."""
        with self._errors():
            return self._file.write(block)

    def flush(self) -> None:
        """Write everything to the file."""
        with self._errors():
            self._file.flush()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(
                "the local disk cannot hold files for the staging store",
                why=str(error),
                hint="free space in the folder for temporary files (TMPDIR), then run again",
                key=self._key,
            ) from error
