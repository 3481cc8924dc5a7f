"""A store with signed documents. Without the key, nobody can write a document that the loader accepts.

A document is an object whose key ends with `.json`. Its last line is the HMAC-SHA256 of its key and its bytes.
Documents name the SHA-256 of every staged file, so staged files need no signature.
"""

from __future__ import annotations

import hashlib
import hmac
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from loader.errors import StagedDataError, UsageError
from loader.store.base import ObjectInfo, Page, Sink, Store

DOCUMENT = ".json"
MARK = b"\nhmac-sha256:"
_DIGITS = 64
_LEAST_BYTES = 16


class SignedStore:
    """A store that signs documents when it writes them, and verifies them when it reads them.

    Args:
        store: holds the objects.
        key: at least 16 bytes.
        root: the address with which other processes open this store and its key.

    Raises:
        UsageError: the key is too short.
    """

    def __init__(self, store: Store, key: bytes, root: str) -> None:
        if len(key) < _LEAST_BYTES:
            raise UsageError(
                "the signing key of the staging store is too short",
                why=f"it has {len(key)} bytes, fewer than {_LEAST_BYTES}",
                hint="create one with: openssl rand -hex 32",
            )
        self.root = root
        self._store = store
        self._key = key

    def create(self, key: str, data: bytes) -> bool:
        """See Store."""
        return self._store.create(key, self._signed(key, data))

    @contextmanager
    def writing(self, key: str) -> Iterator[Sink]:
        """See Store."""
        with self._store.writing(key) as sink:
            if not key.endswith(DOCUMENT):
                yield sink
                return
            held = io.BytesIO()
            yield held
            sink.write(self._signed(key, held.getvalue()))

    def get(self, key: str) -> bytes:
        """See Store.

        Raises:
            StagedDataError: a document without a signature by this key.
        """
        data = self._store.get(key)
        return self._verified(key, data) if key.endswith(DOCUMENT) else data

    @contextmanager
    def reading(self, key: str) -> Iterator[BinaryIO]:
        """See Store."""
        if key.endswith(DOCUMENT):
            yield io.BytesIO(self.get(key))
            return
        with self._store.reading(key) as file:
            yield file

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See Store."""
        return self._store.list(prefix)

    def folders(self, prefix: str) -> tuple[str, ...]:
        """See Store."""
        return self._store.folders(prefix)

    def folders_after(self, prefix: str, after: str) -> Page:
        """See Store."""
        return self._store.folders_after(prefix, after)

    def delete(self, key: str) -> None:
        """See Store."""
        self._store.delete(key)

    def remove(self, prefix: str) -> None:
        """See Store."""
        self._store.remove(prefix)

    def uri(self, key: str) -> str:
        """See Store."""
        return self._store.uri(key)

    def sign(self, key: str) -> bool:
        """Sign a document without a signature, and return whether it had none.

        Raises:
            StagedDataError: the document is signed with another key.
        """
        data = self._store.get(key)
        if MARK in data:
            self._verified(key, data)
            return False
        with self._store.writing(key) as sink:
            sink.write(self._signed(key, data))
        return True

    def _signed(self, key: str, data: bytes) -> bytes:
        return data + MARK + self._digest(key, data) if key.endswith(DOCUMENT) else data

    def _verified(self, key: str, data: bytes) -> bytes:
        document, mark, digest = data.rpartition(MARK)
        if not mark:
            raise StagedDataError(
                "a staged document is not signed",
                why="it was written without the key, or before staging.signing_key was set",
                hint="if nobody else can write to the store, sign all documents once: loader staged sign",
                key=key,
            )
        if len(digest) != _DIGITS or not hmac.compare_digest(digest, self._digest(key, document)):
            raise StagedDataError(
                "the signature of a staged document is wrong",
                why="the document was changed or moved without the key, or signed with another key",
                hint="restore the version that the loader wrote, and check who else can write to the store",
                key=key,
            )
        return document

    def _digest(self, key: str, data: bytes) -> bytes:
        return hmac.new(self._key, key.encode() + b"\0" + data, hashlib.sha256).hexdigest().encode()
