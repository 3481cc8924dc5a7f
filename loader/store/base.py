"""The protocol of a store of staged objects."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, NamedTuple, Protocol

from loader.errors import LoaderError, UsageError

BLOCK_BYTES = 1024 * 1024
"""Bytes of an object that are read at a time."""

UNFINISHED = ".unfinished-"
"""Prefix of files that are still being written, in stores that cannot hide them. Listings skip such files."""


PAGE_NAMES = 1000
"""Names in a page of a listing, which is the limit of S3."""


class Page(NamedTuple):
    """Some names of a listing, sorted, and whether more names follow."""

    names: tuple[str, ...]
    more: bool


def page_of(names: Sequence[str], after: str) -> Page:
    """Return the page after a name, from a complete and sorted listing."""
    first = bisect_right(names, after)
    return Page(tuple(names[first : first + PAGE_NAMES]), first + PAGE_NAMES < len(names))


class ObjectNotFound(LoaderError):
    """The store has no object with that key. Callers that test for existence expect this error."""


@dataclass(frozen=True)
class ObjectInfo:
    """An object in a listing, with its size in bytes and its time by the clock of the store."""

    key: str
    size: int
    modified: datetime = field(compare=False)


def require_key(key: str) -> str:
    """Return the key.

    Raises:
        UsageError: a segment is empty, `.` or `..`, so that the key could leave the root.
    """
    if any(part in {"", ".", ".."} for part in key.split("/")):
        raise UsageError("a key must stay under the store's root", key=key)
    return key


class Sink(Protocol):
    """A file being written, in blocks."""

    def write(self, block: bytes | memoryview, /) -> object:
        """Append the block."""


class Store(Protocol):
    """Objects under a root. Keys are relative. Their segments are separated by `/`, and are not `.` or `..`.

    Every call may raise StoreUnavailable. Readers see an object whole or not at all.

    Attributes:
        root: the address, as `open_store` takes it.
    """

    root: str

    def create(self, key: str, data: bytes) -> bool:
        """Write a new object, or return False and write nothing if the key exists. This alone decides races."""

    def writing(self, key: str) -> AbstractContextManager[Sink]:
        """Write an object in blocks. It appears when the `with` block ends without an error."""

    def get(self, key: str) -> bytes:
        """Return the whole object.

        Raises:
            ObjectNotFound: there is no such object.
        """

    def reading(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Open the object as a file that is read in bounded memory.

        Raises:
            ObjectNotFound: there is no such object.
        """

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects whose key starts with `prefix` (a folder, ending in `/`), in key order."""

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the sorted names of the folders directly under `prefix` (ending in `/`), without their content."""

    def folders_after(self, prefix: str, after: str) -> Page:
        """Return the first PAGE_NAMES of these folders whose names are greater than `after`.

        Args:
            prefix: of the folders.
            after: empty, or digits only, like the names of intervals.
        """

    def delete(self, key: str) -> None:
        """Remove the object, if it exists."""

    def remove(self, prefix: str) -> None:
        """Remove a folder (ending in `/`) with all its objects, if it exists."""

    def uri(self, key: str) -> str:
        """Return the address by which Spark reads the object."""
