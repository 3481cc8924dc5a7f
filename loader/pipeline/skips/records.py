"""Skipping a transaction, or the rows of some tables in it: the use case of `loader skip`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from loader.errors import DataError, UsageError
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline.chain.failover import generation_transport
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.skips.content import check_not_staged, check_rows_only, check_tables, count_tables
from loader.pipeline.skips.search import Part, find
from loader.pipeline.skips.states import SkipState, SkipStates
from loader.pipeline.skips.xa_parts import check_not_xa
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Plan
from loader.staging.filters import CapturedTables
from loader.staging.notes.skips import RowCounts, SkipRecord, Skips

if TYPE_CHECKING:
    from loader.extract.transaction_search import FoundTransaction


class TransactionRows(BaseModel):
    """A transaction that can be skipped.

    Attributes:
        source: the source.
        start, stop: its positions.
        seqno: of the transaction.
        gtid: empty if it has none.
        tables: the rows that would be skipped, by captured table.
        interval: the start of its interval; empty if the interval is not planned yet.
        start_seqno: of the interval; 0 if it is not planned yet.
        staged: the interval is staged, but lacks these rows.
        records: the recorded skips of this transaction, each with its state; empty if there are none.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    start: str
    stop: str
    seqno: int
    gtid: str
    tables: tuple[RowCounts, ...]
    interval: str = ""
    start_seqno: int = 0
    staged: bool = False
    records: tuple[SkipState, ...] = ()


@dataclass(frozen=True)
class _Found:
    """A transaction of the log that changes only rows, and where it was found."""

    transaction: FoundTransaction
    part: Part
    rows: TransactionRows

    def check_not_staged(self) -> None:
        """Check that its rows are not staged.

        Raises:
            UsageError: the rows of a table are staged.
        """
        tables = [one.table for one in self.rows.tables]
        check_not_staged(self.transaction, self.rows.seqno, self.part.staged, tables)


def find_skippable(settings: SourceSettings, transaction: str, tables: Sequence[str] = ()) -> TransactionRows:
    """Return what skipping a transaction would leave out. Nothing is recorded.

    Args:
        settings: of the source.
        transaction: a GTID, a position in the transaction, or its seqno.
        tables: as `schema.table`; empty for the whole transaction.

    Raises:
        UsageError: the log has no such transaction, it has no rows of these tables, or they are staged.
        UnsupportedError: it changes more than rows, or belongs to an XA transaction.
        LoaderError: the log cannot be read up to it.
    """
    chain = chain_of(settings)
    found = _find(settings, chain, transaction, tables)
    records = _records(found, tables, "", "")
    known = [one for record in records if (one := Skips(chain.store, chain.source).find(record))]
    if len(known) < len(records):
        found.check_not_staged()
        return found.rows
    return found.rows.model_copy(update={"records": tuple(dict.fromkeys(SkipStates(chain).of(*one) for one in known))})


def skip_transaction(
    settings: SourceSettings, transaction: str, tables: Sequence[str], *, reason: str, by: str
) -> TransactionRows:
    """Record that a transaction, or the rows of these tables in it, are not to be staged.

    A skip that is recorded already stays as it is.

    Args:
        settings: of the source.
        transaction: a GTID, a position in the transaction, or its seqno.
        tables: as `schema.table`; empty for the whole transaction.
        reason: why.
        by: who wants it, or approved it.

    Raises:
        DataError: its interval was staged with the rows at the same time.
        LoaderError: as `find_skippable`.
    """
    if not reason.strip():
        raise UsageError("a skipped transaction needs a reason", hint="--reason 'what is wrong with it'")
    chain = chain_of(settings)
    found = _find(settings, chain, transaction, tables)
    skips, states = Skips(chain.store, chain.source), SkipStates(chain)
    records = _records(found, tables, reason.strip(), by)
    if not all(map(skips.find, records)):
        found.check_not_staged()
    kept = [skips.find(record) or skips.keep(record) for record in records]
    told = tuple(dict.fromkeys(states.of(*one) for one in kept))
    if late := [one for one in told if one.state == "not used"]:
        raise DataError(
            "the interval was staged with the rows, while they were to be skipped",
            why=late[0].why,
            hint=f"correct the rows on the server; or load the tables again: {_again(late[0])}",
            source=settings.name,
            position=found.rows.start,
        )
    return found.rows.model_copy(update={"records": told})


def _again(state: SkipState) -> str:
    return TableName.parse(state.tables[0]).load_again


def _find(settings: SourceSettings, chain: PlanChain, text: str, tables: Sequence[str]) -> _Found:
    found, part = find(settings, chain, text)
    seqno = found.stop.seqno(part.generation.shift)
    plan = _plan_of(chain, part, seqno)
    captures = CapturedTables(plan.tables if plan else settings.tables)
    transport = generation_transport(settings, part.generation).open()
    check_not_xa(found, transport, part.generation.shift, captures)
    check_rows_only(found, captures)
    _check_not_read_before(found, part)
    counts = [one for one in count_tables(found, transport) if captures(TableName.parse(one.table))]
    check_tables(found, [one.table for one in counts], tables)
    chosen = tuple(one for one in counts if not tables or one.table in tables)
    rows = TransactionRows(
        source=settings.name,
        start=str(found.begin),
        stop=str(found.stop),
        seqno=seqno,
        gtid=str(found.gtid or ""),
        tables=chosen,
        interval=plan.start if plan else "",
        start_seqno=plan.start_seqno if plan else 0,
        staged=part.staged is not None,
    )
    return _Found(found, part, rows)


def _plan_of(chain: PlanChain, part: Part, seqno: int) -> Plan | None:
    """Return the plan of the interval of a seqno, or None if it is not planned."""
    start = chain.start_at_or_before(part.generation.name, seqno - 1)
    plan = chain.plan(part.generation.name, start) if start is not None else None
    return plan if plan and plan.stop_seqno >= seqno else None


def _check_not_read_before(found: FoundTransaction, part: Part) -> None:
    """Refuse a transaction that was read from the server of an older generation.

    Raises:
        UsageError: it was.
    """
    from loader.model.gtid import parse_gtid_set

    until = part.generation.known_until
    if until and found.begin < Position.parse(until) and found.gtid in parse_gtid_set(part.generation.gtids):
        raise UsageError(
            "the transaction was read from another server before",
            why=f"generation {part.generation.name} of the log skips it already",
            hint="name it by its position on the older server: loader intervals",
            position=found.begin,
            gtid=found.gtid,
        )


def _records(found: _Found, tables: Sequence[str], reason: str, by: str) -> list[SkipRecord]:
    """Return the records of the whole transaction, or of these tables."""
    rows = found.rows
    return [
        SkipRecord(
            source=rows.source,
            generation=found.part.generation.name,
            start=rows.start,
            seqno=rows.seqno,
            gtid=rows.gtid,
            table=table,
            rows=tuple(one for one in rows.tables if table in ("", one.table)),
            reason=reason,
            by=by,
            since=datetime.now(UTC).replace(microsecond=0),
        )
        for table in sorted({*tables}) or [""]
    ]
