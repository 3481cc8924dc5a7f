"""The base class of all durable documents: a canonical text, and a format that is checked."""

from __future__ import annotations

import json
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from loader.errors import StagedDataError
from loader.store.base import ObjectNotFound, Store
from loader.store.signed_store import MARK

FORMAT = 1


class Document(BaseModel):
    """A document with one canonical text: sorted keys, no spaces, UTF-8.

    Attributes:
        LATER: fields that later versions added. Empty values of these fields are omitted, so the text of older
            documents does not change.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    LATER: ClassVar[tuple[str, ...]] = ()

    format: Literal[1] = 1

    def canonical(self) -> bytes:
        """Return the bytes that are stored."""
        data = self.model_dump(mode="json", by_alias=True)
        for name in self.LATER:
            if not data[name]:
                del data[name]
        return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def read(cls, data: bytes, key: str) -> Self:
        """Parse stored bytes.

        Raises:
            StagedDataError: the bytes are not such a document, have an unknown format, or `check` refuses them.
        """
        try:
            found = cls.model_validate_json(data, strict=True, by_alias=True, by_name=False)
        except ValidationError as error:
            raise StagedDataError(
                f"the object is not a {cls.__name__.lower()} document of staging format {FORMAT}",
                why="it is signed" if MARK in data else str(error),
                hint="set staging.signing_key to the key that signed it"
                if MARK in data
                else "restore the object, or read it with the loader version that wrote it",
                key=key,
            ) from error
        found.check(key)
        return found

    @classmethod
    def find(cls, store: Store, key: str) -> Self | None:
        """Read the document with that key, or return None if it is absent.

        Raises:
            StagedDataError: see `read`.
        """
        try:
            return cls.read(store.get(key), key)
        except ObjectNotFound:
            return None

    def check(self, key: str) -> None:
        """Refuse a document that the loader would not have written under this key.

        Raises:
            StagedDataError: names the wrong field.
        """
