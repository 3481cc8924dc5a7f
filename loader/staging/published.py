"""The durable document of what a run brought to the warehouse: the published record of an interval, in canonical JSON.

A record that lacks a table which was behind is completed later. Nothing else of it changes.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from loader.staging.document import Document
from loader.staging.documents import Manifest

_Count = Annotated[int, Field(ge=0, lt=2**63)]


class PublishedTable(BaseModel):
    """The state of a table when an interval was published: its Iceberg snapshot and its applied seqno."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: int
    applied: int


class PostponedTable(BaseModel):
    """Why a table was left behind on purpose, and its state then.

    Attributes:
        why: `paused`: a person paused it. `waiting`: it needs the rows of a paused table. `not_due`: its rule merges it
            once in each period, and it was merged in this period.
        snapshot, applied, position: the newest commit of the loader in the table; None, 0 and empty without one.
        waits_for: the table whose rows it needs.
        due: the end of the period, in UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    why: Literal["paused", "waiting", "not_due"]
    snapshot: int | None = None
    applied: int = 0
    position: str = ""
    waits_for: str = ""
    due: datetime | None = None


class Published(Document):
    """A consistent view: the Iceberg snapshot of each table once every table has the interval up to `stop_seqno`.

    Attributes:
        behind: tables that are not in the view, because they are quarantined or postponed, each with the seqno up to
            which it has every record (0: unknown). For a quarantined table it is the applied seqno.
        postponed: the tables of `behind` that were left behind on purpose.
        ahead: tables that are not in the view, because they are past `stop` already: loaded later, or merged by a run
            that has overtaken this one.
        made: tables that a statement in the log created, with the seqno right before it; and tables that a statement
            dropped, with 0. Without tables that were excluded since then, or whose log has a gap since then. None in
            records of versions that did not store it.
        committed_at: the newest commit time up to `stop`, as staged lines write it; empty if there is none, and in
            records of versions that did not store it.
        skipped: by key of a skip of an operator, the names at `stop` of the tables that lack rows. Without those of
            records of versions that did not store it.
        named_at: by key of a skip and name of such a table, the seqno of the rename that gave the name, if any.
        rows: by table of the record, its staged inserts, updates and deletes up to `stop`, since the first record that
            has the table and stored them. The rows of tables that are behind count as well.
        staged_bytes: by such a table, the bytes of its staged files, in the same way.
        warehouse: which warehouse has the snapshots, see `CatalogSettings.place`. Empty in records of versions that did
            not store it.
    """

    source: str
    generation: str
    stop: str
    stop_seqno: int
    tables: dict[str, PublishedTable]
    behind: dict[str, int] = Field(default_factory=dict)
    postponed: dict[str, PostponedTable] = Field(default_factory=dict)
    ahead: tuple[str, ...] = ()
    made: dict[str, int] | None = None
    committed_at: str = ""
    skipped: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    named_at: dict[str, dict[str, int]] = Field(default_factory=dict)
    rows: dict[str, tuple[_Count, _Count, _Count]] = Field(default_factory=dict)
    staged_bytes: dict[str, _Count] = Field(default_factory=dict)
    warehouse: str = ""

    def canonical(self) -> bytes:
        """Return the bytes that are stored. `made` is omitted if it is unknown, but not if it is empty."""
        omitted = {"made"} if self.made is None else set()
        optional = ("ahead", "committed_at", "postponed", "skipped", "named_at", "rows", "staged_bytes", "warehouse")
        omitted |= {name for name in optional if not getattr(self, name)}
        data = self.model_dump(mode="json", exclude=omitted)
        return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    def is_of(self, warehouse: str) -> bool:
        """Return whether the snapshots are in this warehouse, as far as it is known."""
        return self.warehouse in ("", warehouse)

    @property
    def merged_behind(self) -> tuple[int, ...]:
        """The seqnos of the tables behind, without tables that were never merged or loaded."""
        return tuple(seqno for seqno in self.behind.values() if seqno)

    def with_caught_up(self, later: Published) -> Published:
        """Return this record with the tables that were behind and that a later record of the same interval has."""
        caught_up = {name: table for name, table in later.tables.items() if name in self.behind}
        behind = {name: seqno for name, seqno in self.behind.items() if name not in caught_up}
        postponed = {name: one for name, one in self.postponed.items() if name not in caught_up}
        # Both records are of the same position, so the later one also has the names of the earlier one.
        changed = {"tables": self.tables | caught_up, "behind": behind, "postponed": postponed}
        skipped = {"skipped": self.skipped | later.skipped, "named_at": self.named_at | later.named_at}
        return self.model_copy(update=changed | skipped)

    @property
    def skipped_names(self) -> dict[str, dict[str, int]]:
        """The names in `skipped` with their seqnos of `named_at`; 0 for a name that no rename gave."""
        return {
            key: {name: self.named_at.get(key, {}).get(name, 0) for name in names}
            for key, names in self.skipped.items()
        }

    def tables_lacking(self, manifest: Manifest) -> set[str]:
        """Return the tables behind that still need an interval, for its files or for its missing rows."""
        needs = [(str(file.name), file.max_seqno) for file in manifest.files if file.rows]
        needs += [(one.table, manifest.missing_until(one)) for one in manifest.left_out]
        return {name for name, seqno in needs if seqno > self.behind.get(name, seqno)}
