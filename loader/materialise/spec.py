"""What the materialisation jobs are told and what they report."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from loader.materialise.rules import TableRule


class CatalogSettings(BaseModel):
    """An Iceberg catalog as Spark sees it: `type` is Iceberg's own word (hadoop, jdbc, rest, hive, glue).

    `properties` go to the catalog as they are (`jdbc.user`, `io-impl`, ...). `secrets` are references to others
    (`jdbc.password`, `token`, ...), which the driver of Spark follows. A table's namespace is its MySQL schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "lake"
    type: str
    warehouse: str
    uri: str = ""
    properties: dict[str, str] = {}
    secrets: dict[str, str] = {}

    @property
    def place(self) -> str:
        """Which catalog it is, as text: two warehouses have different ones."""
        return " ".join((self.type, self.name, self.uri, self.warehouse))


class TablesSpec(BaseModel):
    """Which tables a job is about, and where they are staged and kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    generation: str
    staging_root: str
    catalog: CatalogSettings
    rules: tuple[TableRule, ...] = ()


class MaterialiseSpec(TablesSpec):
    """Bring every table of a source up to the interval that stops at `through_seqno` (none: the last extracted one)."""

    through_seqno: int | None = None


class LoadSpec(TablesSpec):
    """Make tables from initial loads; `manifests` are keys of load manifests, relative to the staging root."""

    manifests: tuple[str, ...]


class TablesResult(BaseModel):
    """What a job reports of each table; one that failed has an `error`, in the form of `LoaderError.as_dict()`."""

    model_config = ConfigDict(frozen=True)

    tables: tuple[Any, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """0, or the worst code of a failed table."""
        return max((int(table.error["exit_code"]) for table in self.tables if table.error), default=0)


class SnapshotsSpec(BaseModel):
    """Snapshots to look for, by table (`schema.table`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    catalog: CatalogSettings
    snapshots: dict[str, int]


class ReplaySpec(TablesSpec):
    """Compare tables with their changes after `since_seqno`: all, or those of these patterns over `schema.table`."""

    since_seqno: int
    tables: tuple[str, ...] = ()
    publish: bool = False


class Sample(BaseModel):
    """A row that differs: as it is (None: it is not there) and as it should be (None: it should not be there)."""

    model_config = ConfigDict(frozen=True)

    before: dict[str, Any] | None
    after: dict[str, Any] | None


class TableReplay(BaseModel):
    """What the replay of one table found, and did.

    Attributes:
        status: `same`: the table is right. `differs`: `branch` holds what is right. `published`: the table has it now.
            `failed`: see `error`.
        inserts, updates, deletes: rows that were to be.
        files: data files with rows that were to be updated or deleted; without a key with rows equal to such.
        samples: some of these rows.
        branch: stays until the table changes: what it is made of is then the past.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    status: Literal["same", "differs", "published", "failed"]
    position: str = ""
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files: int = 0
    samples: tuple[Sample, ...] = ()
    branch: str = ""
    error: dict[str, Any] | None = None


class ReplayResult(TablesResult):
    """All tables of a replay, by name, and the seqno from which they were replayed."""

    since_seqno: int
    tables: tuple[TableReplay, ...]


class TableResult(BaseModel):
    """What happened to one table.

    Attributes:
        status: `applied` (a commit of ours), `unchanged` (no record for it), `already` (was there before, or another
            run was faster), `failed` (see `error`, in the form of `LoaderError.as_dict()`), `quarantined` (the same,
            now or by an earlier run, in a way that a retry cannot help: it is not attempted until it is released).
        inserts, updates, deletes: staged records merged, before the collapse to the last one per key.
        rows_deleted, rows_inserted: what the merge did to the warehouse's rows.
        misfits: values that their columns cannot hold, by column: NULL now, as the table's rule says.
        applied_seqno, position, snapshot: where the table's newest commit of ours stands.
        complete_through: the table holds every record up to this seqno: by its newest commit, or because the log has
            no record for it since. None when that was not established.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    status: Literal["applied", "unchanged", "already", "failed", "quarantined"]
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    rows_deleted: int = 0
    rows_inserted: int = 0
    misfits: dict[str, int] = {}
    applied_seqno: int | None = None
    position: str = ""
    snapshot: int | None = None
    complete_through: int | None = None
    seconds: float = 0.0
    error: dict[str, Any] | None = None

    def followed_by(self, later: TableResult) -> TableResult:
        """Both as one: where the table stands now, and all that was done."""
        if later.status in {"failed", "quarantined"}:
            return later
        if later.status != "applied":
            return self.model_copy(update={"complete_through": later.complete_through})
        sums = {name: getattr(self, name) + getattr(later, name) for name in _COUNTED}
        misfits = {**(Counter(self.misfits) + Counter(later.misfits))}
        return later.model_copy(update={**sums, "misfits": misfits})


_COUNTED = ("inserts", "updates", "deletes", "rows_deleted", "rows_inserted", "seconds")


class MaterialiseResult(TablesResult):
    """All tables of a run, by name, and the key of the published record when none failed but quarantined ones."""

    tables: tuple[TableResult, ...]
    stop: str = ""
    stop_seqno: int | None = None
    published: str = ""
