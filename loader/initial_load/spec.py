"""The input and the result of the initial load job."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

from loader.initial_load.server.read_limits import ReadLimits
from loader.model.identity import Identity
from loader.model.table import TableName
from loader.staging.documents import Shaping
from loader.staging.filters import matches
from loader.transport.server.address import ServerAddress


class InitialLoadSpec(Shaping):
    """Stage the initial load of the captured tables, or of those in `only` (`schema.table`).

    Attributes:
        identity, shift: of the generation.
        chunk_rows: rows per chunk; 0 to choose them by the size of the table's rows. A load that was started keeps its
            chunks and its `undecodable`.
        limits: of the load on the server that is read.
        read_from: a replica of the server. Tables with a key are read there; None to read them on the server.
        not_before: a position; loads that began before it are ignored, so that each table is read again.
        modes: the patterns and the mode of each table rule; the first rule that matches a table counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    generation: str
    identity: Identity
    shift: int
    server: ServerAddress
    read_from: ServerAddress | None = None
    staging_root: str
    only: tuple[str, ...] = ()
    chunk_rows: int = Field(default=0, ge=0)
    limits: ReadLimits = ReadLimits()
    not_before: str = ""
    modes: tuple[tuple[tuple[str, ...], str], ...] = ()

    def is_history(self, table: TableName) -> bool:
        """Return whether the warehouse keeps every change of a table."""
        return next((mode for patterns, mode in self.modes if matches(table, patterns)), "") == "history"


class TableLoad(BaseModel):
    """The result of one table: `staged` by this run, `already` staged before or by a faster run, or `failed`.

    Attributes:
        bytes: of the staged files.
        position: P0, from which the log is applied over the rows that were read.
        exact_at: the end of the log after the last read; the table is exact once the log is applied up to it.
        manifest: key of the load's manifest.
        error: of a failed table, in the form of `LoaderError.as_dict()`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    status: Literal["staged", "already", "failed"]
    rows: int = 0
    bytes: int = 0
    chunks: int = 0
    position: str = ""
    exact_at: str = ""
    manifest: str = ""
    seconds: float = 0.0
    error: dict[str, Any] | None = None


class InitialLoadResult(BaseModel):
    """All tables of a run, by name; `only`: those that were requested by name."""

    model_config = ConfigDict(frozen=True)

    only: tuple[str, ...] = ()
    tables: tuple[TableLoad, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def manifests(self) -> tuple[str, ...]:
        """Keys of the manifests of all tables that did not fail."""
        return tuple(table.manifest for table in self.tables if table.manifest)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """0, or the highest exit code of a failed table."""
        return max((int(table.error["exit_code"]) for table in self.tables if table.error), default=0)
