"""Stores over a network: what fails there is repeated here, for all of them in one way."""

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
_IN_MEMORY = 64 * 1024  # of an object being written, before it goes to disk; an interval may have many tables
_RANGE_BYTES = 8 * 1024 * 1024
_Result = TypeVar("_Result")


class Remote(Protocol):
    """A place over a network. Each call is one try: it raises StoreUnavailable, and may then be repeated."""

    root: str

    def creating(self, key: str, data: bytes) -> Callable[[], bool]:
        """The tries of one create, to be called until one answers.

        True: the object is this create's own, also when the reply to an earlier try of it was lost. False: another's.
        """

    def put(self, key: str, file: IO[bytes]) -> None:
        """Write or replace an object with the whole of a file, at once."""

    def get(self, key: str) -> bytes:
        """See Store."""

    def get_range(self, key: str, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop` of an object; fewer where it ends before. Raises ObjectNotFound."""

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
    """The store at a remote place.

    A call is tried nine times, with pauses of half a minute in all, before its StoreUnavailable is raised. An object
    is read range by range, of which one is in memory. One that is written in blocks waits on local disk until it is
    whole: so it can be sent again, and memory does not grow with the number of tables that are written at once.
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
        """See Store: a range after the other, each tried again by itself."""
        require_key(key)
        with BufferedReader(_Ranges(lambda start, stop: self._range(key, start, stop)), _RANGE_BYTES) as file:
            file.peek(1)  # so that an object that is not there is told now
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
        retrying = Retrying(
            retry=retry_if_exception_type(StoreUnavailable),
            stop=stop_after_attempt(self._attempts),
            wait=wait_random_exponential(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS),
            reraise=True,
        )
        return retrying(attempt)


class _Ranges(RawIOBase):
    """The bytes of an object, got range by range where they are read. It is read forward, and can be sought in."""

    def __init__(self, get: Callable[[int, int], bytes]) -> None:
        self._get = get
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is, but not from its end, which is not known."""
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Go to a place from the beginning or from here."""
        if whence == SEEK_END:
            raise UnsupportedOperation("the size of the object is not known")
        self._at = offset if whence == SEEK_SET else self._at + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, or less of it at the end."""
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
        """Have it all in the file."""
        with self._errors():
            self._file.flush()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(
                "the local disk does not take what goes to the staging store",
                why=str(error),
                hint="free space in the folder for temporary files (TMPDIR), then run again",
                key=self._key,
            ) from error
