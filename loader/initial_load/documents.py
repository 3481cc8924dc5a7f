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
    """A column of the key that the chunks are cut by, with the order of its index."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    descending: bool = False


class LoadPlan(Document):
    """The decision of an initial load of one table: its position and its chunks.

    Attributes:
        position: P0, the log position before the first read, from which the log is applied. The first read sees
            everything up to P0. Without a key, no read sees anything after P0.
        taken_at: the server's UTC time at P0, with microseconds; `_committed_at` of every staged record.
        table_schema: `TableSchema.as_dict()`.
        index, key: the index and its key that the chunks are cut by; empty for a table without a key, which is one
            chunk.
        bounds: the last key of each chunk except the last chunk, which has no end; see initial_load.keys.
        digest: of the table's definition, see loader.source.digest; empty in plans of versions that did not store it.
        gtids: if a replica may be read, the GTIDs of all transactions up to P0. A read of a replica waits for them.
        unlogged: see read_unlogged of loader.source.schemas.
        select: the expressions to read, in the order of the table's columns.
        undecodable: see Shaping.
        locked_at: of a table without a key, the end of the log once nobody could rename the table any more. Before it,
            another table may have had the name. Empty in plans of versions that did not store it.
        offset_texts: see find_offset_texts of loader.source.virtual_columns.
    """

    LATER = ("offset_texts",)

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
    gtids: str = ""
    undecodable: Literal["error", "hex"] = "error"
    unlogged: tuple[str, ...] | None = None
    locked_at: str = ""
    offset_texts: tuple[str, ...] = ()

    @cached_property
    def definition(self) -> TableSchema:
        """The schema of the table."""
        return TableSchema.from_dict(self.table_schema)

    @property
    def name(self) -> TableName:
        """The name of the table."""
        return self.definition.name

    @property
    def seqno(self) -> int:
        """The seqno of every staged record."""
        return Position.parse(self.position).seqno(self.shift)

    @property
    def folder(self) -> str:
        """The folder of the load's objects."""
        return f"{load_folder(self.source, self.generation, self.name)}/{self.seqno:020d}"

    @property
    def chunks(self) -> int:
        """The number of chunks; at least one."""
        return len(self.bounds) + 1

    def chunk(self, number: int) -> tuple[Bound | None, Bound | None]:
        """Return the key after which a chunk begins and the key with which it ends; None for an open end."""
        lower = self.bounds[number - 1] if number else None
        return lower, self.bounds[number] if number < len(self.bounds) else None


class LoadedChunk(Document):
    """A staged chunk; `file` is None if the chunk has no rows."""

    number: int
    file: StagedFile | None

    def check(self, key: str) -> None:
        """Check that the file lies in the folder of the load: see Document."""
        check_files([self.file] if self.file else [], {}, key.rsplit("/", 2)[0], key)
