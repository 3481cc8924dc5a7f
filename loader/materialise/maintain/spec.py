"""The spec and the result of the job that maintains tables."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from loader.materialise.spec import CatalogSettings, TablesResult


class MaintainSpec(BaseModel):
    """Maintain the tables of a source.

    Attributes:
        tables: names as `schema.table`; empty for all tables.
        keep_days: for how many days snapshots and views are kept.
        dry_run: change nothing, and report what there is to do.
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
    """The size of a table: files and manifests of its newest snapshot, and the number of all snapshots."""

    model_config = ConfigDict(frozen=True)

    data_files: int = 0
    delete_files: int = 0
    bytes: int = 0
    manifests: int = 0
    snapshots: int = 0


class TableMaintained(BaseModel):
    """The maintenance of one table: what was done, or would be done in a dry run.

    Attributes:
        compacted: number of rewritten data files, including their deletions.
        manifests: number of rewritten manifests.
        expired: number of expired snapshots.
        orphans: number of removed files in the table's folder that belonged to no snapshot.
        branches: number of dropped branches of dead attempts.
        error: the error that stopped the maintenance, in the form of `LoaderError.as_dict()`.
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
    """The results of all tables, sorted by name."""

    tables: tuple[TableMaintained, ...]
    dry_run: bool = False
