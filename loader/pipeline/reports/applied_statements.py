"""Statements of the log that changed the schema of tables, from the moment on at which the warehouse has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from loader.materialise.plan.ddl_events import read_barrier
from loader.materialise.plan.interval_chain import Chain
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.reports.activity import Statement
from loader.schema.changes import Altered, SchemaDefined, Shadowed, Truncated, Unreadable
from loader.settings import SourceSettings
from loader.staging.documents import Barrier, Manifest
from loader.staging.published import Published


class AppliedUpTo(BaseModel):
    """How far the tables of a source are, by a published record.

    Attributes:
        stop_seqno: of the record.
        behind: the tables of the record that are behind, each with the seqno up to which it has every record.
    """

    model_config = ConfigDict(frozen=True)

    stop_seqno: int
    behind: dict[str, int] = {}

    def has(self, table: str, seqno: int) -> bool:
        """Return whether a table, if it is in the warehouse, has the changes up to a seqno."""
        return seqno <= self.behind.get(table, self.stop_seqno)

    def first_change(self, later: AppliedUpTo) -> int:
        """Return the seqno after which a table has changes in a later record that it does not have in this one."""
        moved = [seqno for name, seqno in self.behind.items() if later.behind.get(name, later.stop_seqno) > seqno]
        return min([self.stop_seqno, *moved])


class AppliedStatements(NamedTuple):
    """The statements that tables have now and did not have before, in the order of the log, and how far tables are."""

    statements: tuple[Statement, ...]
    applied: AppliedUpTo


def applied_statements(settings: SourceSettings, before: AppliedUpTo) -> AppliedStatements:
    """Return the statements that changed the schema of tables, which `before` does not have and the warehouse has.

    Each statement names the tables that have it since. A table that is behind has it once it is merged further. The
    number of requests depends on the intervals since `before`, and for a table that was released on the intervals
    since it stopped.
    """
    plans = chain_of(settings)
    chain = Chain(plans.store, settings.name, plans.require_generation().name)
    record = chain.newest_published()
    if record is None:
        return AppliedStatements((), before)
    now = AppliedUpTo(stop_seqno=record.stop_seqno, behind=record.behind)
    first = before.first_change(now)
    manifests = chain.intervals_between(first, now.stop_seqno) if first < now.stop_seqno else ()
    return AppliedStatements(tuple(_newly_applied(manifests, record, before, now)), now)


def _newly_applied(
    manifests: Iterable[Manifest], record: Published, before: AppliedUpTo, now: AppliedUpTo
) -> Iterator[Statement]:
    known = {*record.tables, *record.behind, *(record.made or ())}
    for barrier in (one for manifest in manifests for one in manifest.barriers):
        tables = tuple(
            name
            for name in barrier.tables
            if name in known and now.has(name, barrier.seqno) and not before.has(name, barrier.seqno)
        )
        if tables and _changes_schema(barrier):
            yield Statement(barrier.position, barrier.statement, tables)


def _changes_schema(barrier: Barrier) -> bool:
    """Return whether a statement created, altered, renamed or dropped tables. To empty or rebuild them is no change."""
    return any(
        not isinstance(change, Truncated | SchemaDefined | Shadowed | Unreadable)
        and not (isinstance(change, Altered) and not change.actions)
        for change in read_barrier(barrier)
    )
