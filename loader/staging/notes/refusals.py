"""Notes why tables could not be loaded. A table without an initial load cannot follow the log."""

from __future__ import annotations

from typing import Any

from loader.model.table import TableName
from loader.staging.document import Document
from loader.staging.layout import refusal_key
from loader.store.base import Store


class Refusal(Document):
    """Why the last initial load of a table failed, in the form of `LoaderError.as_dict()`."""

    source: str
    table: str
    error: dict[str, Any]


def note_refusal(store: Store, source: str, table: TableName, error: dict[str, Any]) -> None:
    """Note why a table cannot be loaded. A newer note replaces an older one."""
    with store.writing(refusal_key(source, table)) as sink:
        sink.write(Refusal(source=source, table=str(table), error=error).canonical())


def find_refusal(store: Store, source: str, table: TableName) -> Refusal | None:
    """Return why the last initial load of a table failed, or None."""
    return Refusal.find(store, refusal_key(source, table))
