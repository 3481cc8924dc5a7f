"""Log files in a folder on S3, such as an archive. They are read in ranges, and ahead of a sequential reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from loader.binlog.constants import MAGIC
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, GapError, SourceUnavailable
from loader.model.position import Interval
from loader.s3 import S3Address, S3ObjectChanged, S3ObjectMissing, S3Unavailable, open_client, s3_errors
from loader.transport.base import LogFile
from loader.transport.decrypted import log_size, plain
from loader.transport.keys import NO_KEYS, KeyFiles
from loader.transport.segments import segments

_FIRST = 64 * 1024
_GROWTH = 4
_LONGEST = 8 * 1024 * 1024


class S3Transport:
    """Reads `s3://bucket/folder/<basename>.<number>`, and decrypts encrypted files with the keys."""

    def __init__(self, folder: str, keys: KeyFiles = NO_KEYS) -> None:
        self._folder = S3Address.parse(folder)
        self._keys = keys
        self._client: Any = None

    def segments(self, interval: Interval) -> list[tuple[str, int, int]]:
        """See Transport: uses the sizes of the objects."""
        return segments(interval, self.size)

    @contextmanager
    def open(self, file: str, start: int, stop: int) -> Iterator[LogFile]:
        """See Transport: the object, decrypted.

        Raises:
            UsageError: access is denied; or the file is encrypted, and the key is not configured, not found, or wrong.
        """
        with self._missing_as_gap(file), ThreadPoolExecutor(1, "s3-ahead") as ahead:
            yield plain(_Object(self._connected(), self._folder / file, ahead), file, self._keys, start)

    def size(self, file: str) -> int:
        """Return the bytes of log in an object.

        Raises:
            GapError: there is no such object.
        """
        address = self._folder / file
        with self._missing_as_gap(file), s3_errors(address):
            found = self._connected().head_object(Bucket=address.bucket, Key=address.key)
            return self._plain_size(file, int(found["ContentLength"]))

    def listed(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
        """Return the names and sizes of the log files directly in the folder, in the order of names."""
        prefix = f"{self._folder.key}/" if self._folder.key else ""
        with s3_errors(self._folder):
            pages = self._connected().get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._folder.bucket, Prefix=prefix, Delimiter="/"):
                for found in page.get("Contents", ()):
                    name = str(found["Key"]).removeprefix(prefix)
                    if wanted(name):
                        yield name, self._plain_size(name, int(found["Size"]))

    def _plain_size(self, file: str, size: int) -> int:
        """Return the bytes of log in a file. Encryption by MySQL is only checked if a keyring is configured."""
        if not self._keys.keyring or size < len(MAGIC):
            return size
        address = self._folder / file
        answer = self._connected().get_object(Bucket=address.bucket, Key=address.key, Range=f"bytes=0-{len(MAGIC) - 1}")
        return log_size(size, answer["Body"].read())

    def _connected(self) -> Any:
        if self._client is None:
            self._client = open_client()
        return self._client

    @contextmanager
    def _missing_as_gap(self, file: str) -> Iterator[None]:
        try:
            yield
        except S3ObjectMissing as error:
            raise GapError(
                "a log file that is still needed is gone",
                why=f"it is not in {self._folder}",
                hint=f"restore it to the archive, or {LOAD_ALL_AGAIN}",
                file=file,
            ) from error
        except S3ObjectChanged as error:
            raise BinlogFormatError(
                "a log file changed while it was read", hint="run again when it is completely written", file=file
            ) from error
        except S3Unavailable as error:
            raise SourceUnavailable(
                "the archive does not answer", why=error.why, hint=error.hint, file=file, folder=self._folder
            ) from error


class _Object:
    """A LogFile over an object. A sequential reader gets larger pieces, fetched while it reads the piece before."""

    def __init__(self, client: Any, address: S3Address, ahead: ThreadPoolExecutor) -> None:
        self._client = client
        self._address = address
        self._ahead = ahead
        with s3_errors(address):
            head = client.head_object(Bucket=address.bucket, Key=address.key)
        self._size, self._tag = int(head["ContentLength"]), str(head["ETag"])
        self._at = self._base = 0
        self._piece = memoryview(b"")
        self._length = _FIRST
        self._coming: tuple[int, Future[bytes]] | None = None

    def seek(self, offset: int, /) -> int:
        """See LogFile."""
        self._at = offset
        return offset

    def read(self, size: int, /) -> bytes:
        """See LogFile."""
        found = bytes(self._some(size))
        self._at += len(found)
        return found

    def readinto(self, block: memoryview, /) -> int:
        """See LogFile."""
        found = self._some(len(block))
        block[: len(found)] = found
        self._at += len(found)
        return len(found)

    def _some(self, size: int) -> memoryview:
        """Return at most `size` bytes from the current offset; none at the end."""
        if self._at >= self._size or not size:
            return memoryview(b"")
        if not self._base <= self._at < self._base + len(self._piece):
            self._turn()
        first = self._at - self._base
        return self._piece[first : first + size]

    def _turn(self) -> None:
        """Move to the piece with the next byte, and fetch the piece after it for a sequential reader."""
        straight = self._at == self._base + len(self._piece)
        self._length = min(self._length * _GROWTH, _LONGEST) if straight else _FIRST
        coming, self._coming = self._coming, None
        wanted = coming and coming[0] == self._at
        data = coming[1].result() if coming and wanted else self._get(self._at, self._length)
        self._base, self._piece = self._at, memoryview(data)
        behind = self._base + len(data)
        if straight and behind < self._size:
            self._coming = behind, self._ahead.submit(self._get, behind, self._length)

    def _get(self, offset: int, size: int) -> bytes:
        last = min(offset + size, self._size) - 1
        with s3_errors(self._address):
            answer = self._client.get_object(
                Bucket=self._address.bucket, Key=self._address.key, Range=f"bytes={offset}-{last}", IfMatch=self._tag
            )
            data = bytes(answer["Body"].read())
        if len(data) != last + 1 - offset:
            raise S3Unavailable("S3 returned fewer bytes than requested", object=self._address, position=offset)
        return data
