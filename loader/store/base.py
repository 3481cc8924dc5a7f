"""What the loader asks of a place that holds staged objects."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, NamedTuple, Protocol

from loader.errors import LoaderError, UsageError

BLOCK_BYTES = 1024 * 1024
"""How much of an object is read at a time."""

UNFINISHED = ".unfinished-"
"""How names of files begin that are still being written, where a store cannot hide them; listings leave them out."""


PAGE_NAMES = 1000
"""Names in a page of a listing; S3 gives no more."""


class Page(NamedTuple):
    """Some names of a listing, sorted, and whether more follow on the last one."""

    names: tuple[str, ...]
    more: bool


def page_of(names: Sequence[str], after: str) -> Page:
    """The page of a listing that is there whole, and sorted."""
    first = bisect_right(names, after)
    return Page(tuple(names[first : first + PAGE_NAMES]), first + PAGE_NAMES < len(names))


class ObjectNotFound(LoaderError):
    """The store has no object of that key; normal where existence is the question."""


@dataclass(frozen=True)
class ObjectInfo:
    """An object in a listing; `size` in bytes, `modified` by the store's clock."""

    key: str
    size: int
    modified: datetime = field(compare=False)


def require_key(key: str) -> str:
    """The key, which stays under the root.

    Raises:
        UsageError: it has a segment that is empty, `.` or `..`.
    """
    if any(part in {"", ".", ".."} for part in key.split("/")):
        raise UsageError("a key must stay under the store's root", key=key)
    return key


class Sink(Protocol):
    """A file being written, in blocks."""

    def write(self, block: bytes | memoryview, /) -> object:
        """Append the block."""


class Store(Protocol):
    """Objects under a root. Keys are relative, with `/` between segments and none that is `.` or `..`.

    Every call may raise StoreUnavailable. An object is seen whole or not at all. `root` is the address that
    `open_store` takes.
    """

    root: str

    def create(self, key: str, data: bytes) -> bool:
        """Write a new object; False, and nothing written, when the key exists. The only arbiter of races."""

    def writing(self, key: str) -> AbstractContextManager[Sink]:
        """Write an object in blocks; it appears when the block ends without an error."""

    def get(self, key: str) -> bytes:
        """The whole object. Raises ObjectNotFound."""

    def reading(self, key: str) -> AbstractContextManager[BinaryIO]:
        """The whole object as a file, in bounded memory. Raises ObjectNotFound."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects whose key starts with `prefix` (a folder, ending in `/`), in key order."""

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Names of the folders right under `prefix` (ending in `/`), sorted; without looking into them."""

    def folders_after(self, prefix: str, after: str) -> Page:
        """The first of those folders whose names are greater than `after`, at most PAGE_NAMES of them.

        `after` is empty or made of digits, as the names of intervals are.
        """

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens when there is none."""

    def remove(self, prefix: str) -> None:
        """Remove a folder (ending in `/`) with every object in it; nothing happens when there is none."""

    def uri(self, key: str) -> str:
        """The address by which Spark reads the object."""
