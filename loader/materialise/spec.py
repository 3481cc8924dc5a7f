"""The specs and results of the materialisation jobs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from loader.materialise.rules import TableRule
from loader.staging.documents import TableFilter


class CatalogSettings(BaseModel):
    """An Iceberg catalog of Spark. The namespace of a table is its MySQL schema.

    Attributes:
        name: of the catalog in Spark.
        type: Iceberg's name of the catalog type: hadoop, jdbc, rest, hive or glue (accepted, not tested).
        warehouse: the location of the tables. For rest, the name of the warehouse on the server.
        uri: of the catalog's server, if it has one.
        properties: other properties of the catalog, such as `jdbc.user` or `io-impl`.
        secrets: references to secret properties, such as `jdbc.password` or `token`. The Spark driver resolves them.
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
        """A text that identifies the catalog and warehouse."""
        return " ".join((self.type, self.name, self.uri, self.warehouse))


class TablesSpec(BaseModel):
    """The source of a job, its staging root, its catalog and the table rules."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    generation: str
    staging_root: str
    catalog: CatalogSettings
    rules: tuple[TableRule, ...] = ()


class MaterialiseSpec(TablesSpec):
    """Merge every table of a source up to the interval that stops at `through_seqno`.

    Attributes:
        tables: the captured tables by the configuration. Other tables stay as they are.
        through_seqno: without it, the last extracted interval.
        now: also merge tables that are not due by their rules.
    """

    tables: TableFilter = TableFilter(include=("*",))
    through_seqno: int | None = None
    now: bool = False


class LoadSpec(TablesSpec):
    """Apply initial loads. `manifests` are keys of load manifests, relative to the staging root."""

    manifests: tuple[str, ...]


class AdoptSpec(TablesSpec):
    """Take over tables that were loaded by other means as of a position.

    Attributes:
        definitions: of the source's tables, as TableSchema.as_dict().
        position, seqno: the tables have every change before it.
        exact_at, exact_at_seqno: the tables have no change after it. Those with a key may have some before it.
        unlogged: by table, see read_unlogged of loader.source.schemas.
        log: `Generation.log` of the generation.
    """

    definitions: tuple[dict[str, Any], ...]
    position: str
    seqno: int
    exact_at: str
    exact_at_seqno: int
    unlogged: dict[str, tuple[str, ...]]
    log: str


class TablesResult(BaseModel):
    """The results of a job by table. A failed table has an `error`, in the form of `LoaderError.as_dict()`."""

    model_config = ConfigDict(frozen=True)

    tables: tuple[Any, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """The highest exit code of a failed table, or 0."""
        return max((int(table.error["exit_code"]) for table in self.tables if table.error), default=0)


class SnapshotsSpec(BaseModel):
    """Snapshots to look up, by table (`schema.table`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    catalog: CatalogSettings
    snapshots: dict[str, int]


class ReplaySpec(TablesSpec):
    """Compare tables with their changes after `since_seqno`.

    Attributes:
        until_seqno: compare only rows that changed up to it; 0: all rows that changed since. Each row is compared with
            its newest change in either case.
        tables: patterns over `schema.table`; empty for all tables.
        publish: publish the corrections.
        approved_by: who approved the corrections; empty if nobody was asked. The snapshots that publish them have the
            name in their summary, as `loader.approved_by`.
    """

    since_seqno: int
    until_seqno: int = 0
    tables: tuple[str, ...] = ()
    publish: bool = False
    approved_by: str = ""


class Sample(BaseModel):
    """A row that differs.

    Attributes:
        before: the row in the table; None if it is missing.
        after: the row as it should be; None if it should not exist.
    """

    model_config = ConfigDict(frozen=True)

    before: dict[str, Any] | None
    after: dict[str, Any] | None


class TableReplay(BaseModel):
    """The result of replaying one table.

    Attributes:
        status: `same`: the table is correct. `differs`: `branch` holds the correct rows. `published`: the table was
            corrected. `failed`: see `error`.
        inserts, updates, deletes: numbers of rows to insert, update and delete.
        files: number of data files with rows to update or delete. Without a key, files with copies of such rows count.
        samples: some of these rows.
        branch: the branch with the correct rows. It stays until the table changes.
        note: from where the table was compared, if a newer load is the reason. For people.
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
    note: str = ""
    error: dict[str, Any] | None = None


class ReplayResult(TablesResult):
    """The results of all replayed tables, sorted by name, and the two seqnos of its `ReplaySpec`."""

    since_seqno: int
    until_seqno: int
    tables: tuple[TableReplay, ...]


class TableResult(BaseModel):
    """The result of merging or loading one table.

    Attributes:
        status: `applied`: this run committed. `unchanged`: there were no records of the table. `already`: the table was
            at the target before, or another run was faster. `failed`: see `error`, in the form of
            `LoaderError.as_dict()`. `quarantined`: it failed permanently, in this run or an earlier one, and is not
            merged until it is released. `paused`: it is not merged until a person resumes it. `waiting`: it needs the
            rows of a paused table. `not_due`: by its rule it is merged later.
        inserts, updates, deletes: numbers of staged records, before they are collapsed.
        bytes: of the staged files that were read.
        rows_deleted, rows_inserted: numbers of rows that the merge deleted and inserted.
        misfits: by column, the number of values that the column cannot hold. They became NULL by the table's rule.
        applied_seqno, position, snapshot: the newest commit of the loader in the table.
        complete_through: the seqno up to which the table has every record, by its newest commit, or because the log
            has no later record of it. None if that is not established.
        waits_for: the table whose rows a `waiting` table needs.
        due: when a table that is not due is merged again, in UTC.
        note: why a table is left behind on purpose, for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    status: Literal["applied", "unchanged", "already", "failed", "quarantined", "paused", "waiting", "not_due"]
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    bytes: int = 0
    rows_deleted: int = 0
    rows_inserted: int = 0
    misfits: dict[str, int] = {}
    applied_seqno: int | None = None
    position: str = ""
    snapshot: int | None = None
    complete_through: int | None = None
    waits_for: str = ""
    due: datetime | None = None
    note: str = ""
    seconds: float = 0.0
    error: dict[str, Any] | None = None

    @property
    def postponed(self) -> bool:
        """Whether the table was left behind on purpose, which is not a failure."""
        return self.status in {"paused", "waiting", "not_due"}

    def followed_by(self, later: TableResult) -> TableResult:
        """Return both results as one: the later position and the sums of all counts."""
        if later.status in {"failed", "quarantined"}:
            return later
        if later.status != "applied" and not later.postponed:
            newest = ("snapshot", "applied_seqno", "position") if later.snapshot is not None else ()
            return self.model_copy(update={name: getattr(later, name) for name in (*newest, "complete_through")})
        sums = {name: getattr(self, name) + getattr(later, name) for name in _COUNTED}
        misfits = {**(Counter(self.misfits) + Counter(later.misfits))}
        return later.model_copy(update={**sums, "misfits": misfits})


_COUNTED = ("inserts", "updates", "deletes", "bytes", "rows_deleted", "rows_inserted", "seconds")


class MaterialiseResult(TablesResult):
    """The results of all tables, sorted by name, and the key of the published record.

    The key is empty if a table failed that is not quarantined.
    """

    tables: tuple[TableResult, ...]
    stop: str = ""
    stop_seqno: int | None = None
    published: str = ""
