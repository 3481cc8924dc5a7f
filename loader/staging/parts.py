"""Writing the CSV parts of a range: one file per table, schema and part, hashed while it is written."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass, field

from loader.failpoints import failpoint
from loader.model.table import TableSchema
from loader.staging.documents import StagedFile
from loader.staging.layout import part_key
from loader.store.base import Sink, Store


@dataclass
class _Open:
    key: str
    sink: Sink
    bytes: int = 0
    sha256: hashlib._Hash = field(default_factory=hashlib.sha256)


class PartWriter:
    """Writes the files of one part. Use it as a context manager: the files appear together at its end, or not at all.

    Without `hashed`, no SHA-256 is computed, which saves a quarter of the time. Use this only for files that no
    manifest names.
    """

    def __init__(self, store: Store, folder: str, attempt: str, part: str, *, hashed: bool = True) -> None:
        self._hashed = hashed
        self._store = store
        self._place = (folder, attempt)
        self._part = part
        self._stack = ExitStack()
        self._open: dict[TableSchema, _Open] = {}

    def __enter__(self) -> PartWriter:
        failpoint("part.before")
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]
        failpoint("part.after")

    def write(self, schema: TableSchema, lines: memoryview) -> None:
        """Append whole lines to the file of a table."""
        if schema not in self._open:
            key = part_key(*self._place, schema.name, schema.schema_id, self._part)
            self._open[schema] = _Open(key, self._stack.enter_context(self._store.writing(key)))
        file = self._open[schema]
        file.sink.write(lines)
        if self._hashed:
            file.sha256.update(lines)
        file.bytes += len(lines)

    def staged(self, schema: TableSchema, operations: tuple[int, int, int], seqnos: tuple[int, int]) -> StagedFile:
        """Return the manifest entry of a table's file.

        Args:
            schema: of the table.
            operations: numbers of inserts, updates and deletes.
            seqnos: lowest and highest seqno.
        """
        file = self._open[schema]
        inserts, updates, deletes = operations
        return StagedFile(
            key=file.key,
            schema_name=schema.name.schema,
            table=schema.name.table,
            schema_id=schema.schema_id,
            inserts=inserts,
            updates=updates,
            deletes=deletes,
            bytes=file.bytes,
            sha256=file.sha256.hexdigest(),
            min_seqno=seqnos[0],
            max_seqno=seqnos[1],
        )
