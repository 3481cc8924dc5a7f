"""A double for tests of pure logic only; servers, stores and Spark are tested for real."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from loader.store.base import ObjectInfo, ObjectNotFound, Page, page_of


class MemoryStore:
    """A store in memory, with the contract of `loader.store.base.Store`."""

    def __init__(self) -> None:
        self.root = "memory://"
        self.objects: dict[str, bytes] = {}

    def create(self, key: str, data: bytes) -> bool:
        """See Store."""
        if key in self.objects:
            return False
        self.objects[key] = data
        return True

    @contextmanager
    def writing(self, key: str) -> Iterator[io.BytesIO]:
        """See Store."""
        file = io.BytesIO()
        yield file
        self.objects[key] = file.getvalue()

    def get(self, key: str) -> bytes:
        """See Store."""
        if key not in self.objects:
            raise ObjectNotFound("no such object", key=key)
        return self.objects[key]

    @contextmanager
    def reading(self, key: str) -> Iterator[io.BytesIO]:
        """See Store."""
        yield io.BytesIO(self.get(key))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See Store."""
        for key in sorted(self.objects):
            if key.startswith(prefix):
                yield ObjectInfo(key, len(self.objects[key]), datetime.now(UTC))

    def folders(self, prefix: str) -> tuple[str, ...]:
        """See Store."""
        below = {key.removeprefix(prefix) for key in self.objects if key.startswith(prefix)}
        return tuple(sorted({key.split("/")[0] for key in below if "/" in key}))

    def folders_after(self, prefix: str, after: str) -> Page:
        """See Store."""
        return page_of(self.folders(prefix), after)

    def delete(self, key: str) -> None:
        """See Store."""
        self.objects.pop(key, None)

    def remove(self, prefix: str) -> None:
        """See Store."""
        for key in [key for key in self.objects if key.startswith(prefix)]:
            del self.objects[key]

    def uri(self, key: str) -> str:
        """See Store."""
        return f"{self.root}{key}"
