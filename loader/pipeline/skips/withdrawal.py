"""Withdrawing a skip that no plan and no extraction used: the use case of `loader skip --withdraw`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from loader.errors import DataError, LoaderError, UsageError
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.skips.content import table_options
from loader.pipeline.skips.search import Place, parse_transaction
from loader.pipeline.skips.states import SkipState, SkipStates
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation
from loader.staging.notes.skips import SkipRecord, Skips, Withdrawal


def withdraw_skip(
    settings: SourceSettings, transaction: str, tables: Sequence[str], *, reason: str, by: str
) -> tuple[SkipState, ...]:
    """Withdraw the recorded skips of a transaction, and return them. Their rows are staged as if nothing was skipped.

    The log is not read. A skip that is withdrawn already stays as it is.

    Args:
        settings: of the source.
        transaction: a GTID, a position in the transaction, or its seqno.
        tables: as `schema.table`; empty for all skips of the transaction.
        reason: why.
        by: who wants it.

    Raises:
        UsageError: no such skip is recorded, or a plan or a staged interval has it.
        DataError: an interval was planned or staged without the rows at the same time.
    """
    if not reason.strip():
        raise UsageError("a withdrawal needs a reason", hint="--reason 'why the rows must not be skipped'")
    chain = chain_of(settings)
    found = _find_records(chain, transaction, tables)
    for key, record in found.items():
        if error := _refusal(SkipStates(chain), key, record, UsageError):
            raise error
    skips, now = Skips(chain.store, chain.source), datetime.now(UTC).replace(microsecond=0)
    for key in found:
        skips.withdraw(Withdrawal(source=chain.source, record=key, reason=reason.strip(), by=by, since=now))
    for key, record in found.items():
        if error := _refusal(SkipStates(chain), key, record, DataError):
            raise error
    return tuple(SkipStates(chain).of(*one) for one in found.items())


def _refusal(states: SkipStates, key: str, record: SkipRecord, kind: type[LoaderError]) -> LoaderError | None:
    """Return the error of a skip that cannot be withdrawn, or None."""
    plan = states.plan_with(key, record)
    state = states.of(key, record)
    if not plan and state.state != "used":
        return None
    done = f"the interval from {plan.start} is planned without its rows" if plan else "an interval lacks its rows"
    options = table_options(map(TableName.parse, state.names or record.tables))
    return kind(
        "the skip cannot be withdrawn any more",
        why=f"{done}, and plans and staged intervals never change",
        hint=f"load the tables again, which brings the rows back: loader initial-load {options} --again; then:"
        " loader run",
        source=record.source,
        position=record.start,
    )


def _find_records(chain: PlanChain, text: str, tables: Sequence[str]) -> Mapping[str, SkipRecord]:
    """Return the records to withdraw by key. If all are withdrawn already, return those.

    Raises:
        UsageError: no skip matches, the text matches several transactions, or only the whole transaction is skipped.
    """
    place, skips = parse_transaction(text), Skips(chain.store, chain.source)
    generations = {one.name: one for one in chain.generations()}
    mine = {key: one for key, one in skips.all().items() if _is_at(place, one, generations[one.generation])}
    live = {key: one for key, one in mine.items() if not skips.withdrawal(key)}
    _check_one_transaction(text, live.values())
    whole = any(not one.table for one in live.values())
    if {*tables} - {one.table for one in (live if whole else mine).values()} or not mine:
        raise _not_skipped(chain, text, tables, live.values())
    named = {key: one for key, one in mine.items() if not tables or one.table in tables}
    return {key: one for key, one in named.items() if key in live} or named


def _check_one_transaction(text: str, records: Iterable[SkipRecord]) -> None:
    """Check that a text names one transaction. Logs of different servers can have the same positions.

    Raises:
        UsageError: it names several.
    """
    names = dict.fromkeys(one.gtid or str(one.seqno) for one in records)
    if len(names) > 1:
        raise UsageError(
            "several skipped transactions have this position, in the logs of different servers",
            why=f"their GTIDs or seqnos are {', '.join(names)}",
            hint="name one of them by its GTID or seqno",
            transaction=text,
        )


def _is_at(place: Place, record: SkipRecord, generation: Generation) -> bool:
    if place.gtid:
        return record.gtid == str(place.gtid)
    if place.position is None:
        return record.seqno == place.seqno
    start = Position.parse(record.start)
    stop = Position.of_seqno(start.basename, record.seqno, generation.shift)
    return start.basename == place.position.basename and start <= place.position < stop


def _not_skipped(chain: PlanChain, text: str, tables: Sequence[str], live: Collection[SkipRecord]) -> UsageError:
    whole = any(not one.table for one in live)
    has = ", ".join(one.table or "the whole transaction" for one in live)
    return UsageError(
        f"no skip of {', '.join(tables)} in this transaction is recorded"
        if tables
        else "no skip of this transaction is recorded",
        why=f"what is skipped in it: {has}" if has else "",
        hint=f"withdraw the skip of the whole transaction: loader skip {text} --withdraw --reason TEXT"
        if whole
        else "list the skips: loader status",
        source=chain.source,
        transaction=text,
    )
