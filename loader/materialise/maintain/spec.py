"""What the job that maintains tables is told and what it reports."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from loader.materialise.spec import CatalogSettings, TablesResult


class MaintainSpec(BaseModel):
    """Maintain the tables of a source, or only some of them (`schema.table`); `dry_run`: only say what there is to do.

    `keep_days`: for how long snapshots and views are kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    generation: str
    staging_root: str
    catalog: CatalogSettings
    tables: tuple[str, ...] = ()
    keep_days: float
    dry_run: bool = False


class Shape(BaseModel):
    """What a table consists of: files of its newest rows, and snapshots of all."""

    model_config = ConfigDict(frozen=True)

    data_files: int = 0
    delete_files: int = 0
    bytes: int = 0
    manifests: int = 0
    snapshots: int = 0


class TableMaintained(BaseModel):
    """What was done to a table, or would be.

    Attributes:
        compacted: data files that were rewritten, together with the deletions on them.
        manifests: that were rewritten.
        expired: snapshots.
        orphans: files in the table's folder that belonged to no snapshot, and were removed.
        branches: of attempts that died, and were dropped.
        error: what stopped it, in the form of `LoaderError.as_dict()`.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    before: Shape = Shape()
    after: Shape = Shape()
    compacted: int = 0
    manifests: int = 0
    expired: int = 0
    orphans: int = 0
    branches: int = 0
    seconds: float = 0.0
    error: dict[str, Any] | None = None


class MaintainResult(TablesResult):
    """All tables, by name."""

    tables: tuple[TableMaintained, ...]
    dry_run: bool = False
