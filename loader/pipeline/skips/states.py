"""States of the skips of operators: whether an interval was staged with or without the rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict

from loader.materialise.plan.skipped_names import Names
from loader.model.table import TableName
from loader.pipeline.chain.interval_lookup import newest_record
from loader.pipeline.skips.renames import names_after
from loader.pipeline.skips.search import staged_with_gtid
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest, Plan
from loader.staging.notes.skips import SkipRecord, Skips
from loader.staging.published import Published

State = Literal["waiting", "used", "not used", "withdrawn"]
"""The state of a skip.

`waiting`: the rows are not staged yet. `used`: the interval is staged without them. `not used`: they are staged.
`withdrawn`: a person withdrew the skip before a plan or an extraction used it.
"""


class SkipState(BaseModel):
    """A transaction that an operator skipped, or the rows of one table in it.

    Attributes:
        start: where the transaction begins, in the log in which it was found.
        seqno: of the transaction.
        gtid: empty if it has none.
        whole: the whole transaction is skipped.
        tables: captured tables that lack rows.
        rows: how many rows they lack; 0 if the rows cannot be decoded.
        reason, by, since: see SkipRecord.
        state: see State.
        why: why it is not used, what it waits for, or who withdrew it; of a skip that is used, why its withdrawal had
            no effect, or empty.
        applies_from: the seqno from which the tables lack the rows; 0 if it is not used yet.
        names: the names that the tables have now in the warehouse, or at the stop of the interval if it is not applied
            yet; empty if it is not used yet.
        named_at: names that a rename gave, each with its seqno.
    """

    model_config = ConfigDict(frozen=True)

    start: str
    seqno: int
    gtid: str
    whole: bool
    tables: tuple[str, ...]
    rows: int
    reason: str
    by: str
    since: datetime
    state: State
    why: str = ""
    applies_from: int = 0
    names: tuple[str, ...] = ()
    named_at: tuple[tuple[str, int], ...] = ()

    @property
    def table_text(self) -> str:
        """The tables, with their new names if they were renamed."""
        new = [name for name in self.names if name not in self.tables]
        return ", ".join(self.tables) + (f" (now {', '.join(new)})" if new else "")


class SkipStates:
    """The skips of a source."""

    def __init__(self, chain: PlanChain) -> None:
        self._chain = chain
        self._skips = Skips(chain.store, chain.source)

    @cached_property
    def _generations(self) -> list[Generation]:
        return self._chain.generations()

    @cached_property
    def _published(self) -> Published | None:
        return newest_record(self._chain)

    def all(self) -> tuple[SkipState, ...]:
        """Return all skips, in the order of the log. Each needs a few requests."""
        return tuple(self.of(key, record) for key, record in self._skips.all().items())

    def of(self, key: str, record: SkipRecord) -> SkipState:
        """Return the state of a record."""
        state, why, seqno = self._with_withdrawal(key, record, *self._judge(key, record))
        names = self._names(key, record) if state == "used" else {}
        return SkipState(
            start=record.start,
            seqno=record.seqno,
            gtid=record.gtid,
            whole=not record.table,
            tables=record.tables,
            rows=sum(one.inserts + one.updates + one.deletes for one in record.rows),
            reason=record.reason,
            by=record.by,
            since=record.since,
            state=state,
            why=why,
            applies_from=seqno,
            names=tuple(names),
            named_at=tuple((name, at) for name, at in names.items() if at),
        )

    def _names(self, key: str, record: SkipRecord) -> Names:
        if self._published and key in self._published.skipped:
            return self._published.skipped_names[key]
        manifest = self._extracted(record)
        return names_after(manifest, record) if manifest else dict.fromkeys(record.tables, 0)

    def plan_with(self, key: str, record: SkipRecord) -> Plan | None:
        """Return the plan that carries a record, or None. Extractions of this plan always leave the rows out."""
        if self._goes_on(record):
            return None
        start = self._chain.start_at_or_before(record.generation, record.seqno - 1)
        plan = self._chain.plan(record.generation, start) if start is not None else None
        return plan if plan and any(one.key == key for one in plan.skips) else None

    def _with_withdrawal(
        self, key: str, record: SkipRecord, state: State, why: str, seqno: int
    ) -> tuple[State, str, int]:
        withdrawal = self._skips.withdrawal(key)
        if not withdrawal:
            return state, why, seqno
        if state == "used":
            return state, "it was withdrawn too late", seqno
        if self.plan_with(key, record):
            return "waiting", f"{why}; it was withdrawn too late", 0
        return "withdrawn", f"by {withdrawal.by}, {withdrawal.since:%F %T}: {withdrawal.reason}", 0

    def _judge(self, key: str, record: SkipRecord) -> tuple[State, str, int]:
        manifest = self._extracted(record)
        if manifest and manifest.generation == record.generation:
            return self._in_manifest(key, record, manifest, record.seqno)
        if manifest:
            return self._in_manifest(key, record, manifest, manifest.stop_seqno)
        if not self._goes_on(record):
            return "waiting", "its interval is not staged yet", 0
        if not record.gtid:
            return "not used", "the log continues on another server from an earlier position, without GTIDs", 0
        return "waiting", "the log continues on another server, and its interval there is not staged yet", 0

    def _goes_on(self, record: SkipRecord) -> bool:
        """Return whether the log continues on another server from a position before the transaction."""
        return record.seqno > self._chain.valid_until(self._generation(record))

    def _generation(self, record: SkipRecord) -> Generation:
        return next(one for one in self._generations if one.name == record.generation)

    def _extracted(self, record: SkipRecord) -> Manifest | None:
        """Return the manifest of the extraction that has the transaction, or None if it is not staged."""
        if not self._goes_on(record):
            start = self._chain.start_at_or_before(record.generation, record.seqno - 1)
            manifest = self._chain.extracted_manifest(record.generation, start) if start is not None else None
            return manifest if manifest and manifest.stop_seqno >= record.seqno else None
        if not record.gtid:
            return None
        for later in self._generations[self._generations.index(self._generation(record)) + 1 :]:
            if found := staged_with_gtid(self._chain, later, record.gtid):
                return self._chain.extracted_manifest(later.name, found.start_seqno) or found
        return None

    def _in_manifest(self, key: str, record: SkipRecord, extracted: Manifest, seqno: int) -> tuple[State, str, int]:
        """Judge a record by the manifests of its interval: its own one, and those of backfilled tables."""
        if key in extracted.skips:
            return "used", "", seqno
        filled = self._chain.backfilled_manifests(extracted) if extracted.left_out else {}
        missing = {one.name for one in extracted.left_out}
        tables = [TableName.parse(table) for table in record.tables]
        if any(name in filled and key in filled[name].skips for name in tables):
            return "used", "", seqno
        if all(name in missing and name not in filled for name in tables):
            return "waiting", f"stage the other rows: loader extract --interval {extracted.start}", 0
        return "not used", f"the interval from {extracted.start} was staged with the rows", 0


def first_skip(chain: PlanChain, table: str, skips: Sequence[SkipState], warehouse: str) -> str:
    """Return the first transaction after the position of a table's newest load in which its rows were skipped.

    Args:
        chain: of the source.
        table: `schema.table`, as it is named in the warehouse.
        skips: all skips of the source.
        warehouse: that has the table; see Published.
    """
    mine = [one for one in skips if one.state == "used" and table in one.names]
    if not mine:
        return ""
    name = TableName.parse(table)
    generations = [generation.name for generation in chain.generations()]

    def is_loaded(since: int) -> bool:
        return chain.loads.has_applied(generations, name, since, sys.maxsize, warehouse)

    # A load before the rename that gave the table its name was of another table.
    since = ((one, max(one.applies_from, dict(one.named_at).get(table, 0))) for one in mine)
    return next((one.start for one, seqno in since if not is_loaded(seqno)), "")
