"""The durable documents of an initial load: its plan, and one per finished chunk. See also staging.documents.Manifest.

<source>/<generation>/load/<schema>/<table>/<position seqno, 20 digits>/plan.json
                                                                       /chunks/<number>.json
                                                                       /manifest.json
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.staging.document import Document
from loader.staging.document_checks import check_files
from loader.staging.documents import StagedFile
from loader.staging.layout import load_folder

Bound = tuple[str, ...]


class KeyColumn(BaseModel):
    """A column of the key that the chunks are cut by, as its index orders it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    descending: bool = False


class LoadPlan(Document):
    """The decision of an initial load of one table: from which position on the log goes over it, and its chunks.

    Attributes:
        position: P0, the log position before the first read; everything up to it was visible to the first read, and
            without a key nothing after it to any.
        taken_at: the server's UTC time at P0, with microseconds; `_committed_at` of every record.
        table_schema: `TableSchema.as_dict()`.
        index, key: the key by which it is cut, and its index; none for a table without a key, which is one chunk.
        bounds: last key of each chunk but the last one, which has no end; see initial_load.keys.
        digest: of the table's definition, see loader.source.digest; empty in plans of versions that did not keep one.
        unlogged: see read_unlogged of loader.source.schemas.
        select: the expressions that are read, in the order of the table's columns.
        undecodable: see SourceSettings.
    """

    source: str
    generation: str
    identity: Identity
    position: str
    shift: int
    taken_at: str
    table_schema: dict[str, Any]
    index: str
    key: tuple[KeyColumn, ...]
    bounds: tuple[Bound, ...]
    select: tuple[str, ...]
    digest: str = ""
    undecodable: Literal["error", "hex"] = "error"
    unlogged: tuple[str, ...] | None = None

    @cached_property
    def definition(self) -> TableSchema:
        """The table's schema."""
        return TableSchema.from_dict(self.table_schema)

    @property
    def name(self) -> TableName:
        """The table."""
        return self.definition.name

    @property
    def seqno(self) -> int:
        """The seqno of every record."""
        return Position.parse(self.position).seqno(self.shift)

    @property
    def folder(self) -> str:
        """Where the load's objects lie."""
        return f"{load_folder(self.source, self.generation, self.name)}/{self.seqno:020d}"

    @property
    def chunks(self) -> int:
        """Number of chunks; each table has one at least."""
        return len(self.bounds) + 1

    def chunk(self, number: int) -> tuple[Bound | None, Bound | None]:
        """The key that the chunk begins after, and the one it ends with; None where it is open."""
        lower = self.bounds[number - 1] if number else None
        return lower, self.bounds[number] if number < len(self.bounds) else None


class LoadedChunk(Document):
    """A chunk that was read and staged; `file` is None when it had no rows."""

    number: int
    file: StagedFile | None

    def check(self, key: str) -> None:
        """See Document: its file lies in the folder of the load."""
        check_files([self.file] if self.file else [], {}, key.rsplit("/", 2)[0], key)
