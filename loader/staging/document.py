"""What every durable document in the store has in common: one canonical text, and a format that is checked."""

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
        LATER: fields that came later: they are left out where they are empty, so that the text is what it always was.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    LATER: ClassVar[tuple[str, ...]] = ()

    format: Literal[1] = 1

    def canonical(self) -> bytes:
        """The bytes that are stored."""
        data = self.model_dump(mode="json")
        for name in self.LATER:
            if not data[name]:
                del data[name]
        return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def read(cls, data: bytes, key: str) -> Self:
        """Parse stored bytes.

        Raises:
            StagedDataError: not such a document, of a format this version does not know, or what `check` refuses.
        """
        try:
            found = cls.model_validate_json(data, strict=True)
        except ValidationError as error:
            raise StagedDataError(
                f"this is no {cls.__name__.lower()} of staging format {FORMAT}",
                why="it is signed" if MARK in data else str(error),
                hint="set the staging.signing_key that it was signed with"
                if MARK in data
                else "read it with the loader version that wrote it, or restore the object",
                key=key,
            ) from error
        found.check(key)
        return found

    @classmethod
    def find(cls, store: Store, key: str) -> Self | None:
        """Read the document with that key; None when there is none.

        Raises:
            StagedDataError: see `read`.
        """
        try:
            return cls.read(store.get(key), key)
        except ObjectNotFound:
            return None

    def check(self, key: str) -> None:
        """Refuse what the loader would not have written under that key.

        Raises:
            StagedDataError: naming the field.
        """
