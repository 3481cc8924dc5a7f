"""Makes the templates with which the kernel lists events: from the listing of an event with marks instead of values.

The listing alone defines the text. Where a mark appears in it, the template has a slot.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from loader.binlog.listing import templates as t
from loader.model.gtid import Gtid, MariadbGtid
from loader.reader.events import (
    AnonymousGtidEvent,
    Event,
    EventHeader,
    GtidEvent,
    MariadbGtidEvent,
    QueryEvent,
    RowsEvent,
    RowsQueryEvent,
    Transaction,
    XidEvent,
)

_BASES = (710_000_000_000_000_000, 830_000_000_000_000_000)
_SECONDS = (4_071_515_467, 4_163_908_519)

Step = tuple[int, bytes]
"""A slot, and the bytes of a literal."""


class Sample(NamedTuple):
    """The listing of an event without rows: the text before its rows, and after them."""

    before: str
    after: str = ""


def steps_of(event: Event, listed: Callable[[Event], Sample]) -> list[Step] | None:
    """Return the steps of an event's template; None if a text of the event looks like a mark.

    Args:
        event: an event of a transaction, of a kind that the kernel lists.
        listed: lists an event.
    """
    first, second = (_steps(event, listed, base, seconds) for base, seconds in zip(_BASES, _SECONDS, strict=True))
    return first if first == second else None


def _steps(event: Event, listed: Callable[[Event], Sample], base: int, seconds: int) -> list[Step]:
    marked, marks = _with_marks(event, base, seconds)
    sample = listed(marked)
    slots = re.compile("(" + "|".join(map(re.escape, sorted(marks, key=len, reverse=True))) + ")")
    found: list[Step] = []
    for part, text in enumerate(sample):
        if part and isinstance(event, RowsEvent):
            found.append((t.ROWS, b""))
        found += [
            (marks[piece], b"") if piece in marks else (t.LITERAL, piece.encode())
            for piece in slots.split(text)
            if piece
        ]
    return found


def _with_marks(event: Event, base: int, seconds: int) -> tuple[Event, dict[str, int]]:
    """Return the event with marks instead of values, and the slot of each mark."""
    transaction = event.transaction
    if transaction is None:
        raise ValueError("an event between transactions has no template")
    mark = {slot: base + slot for slot in range(t.VALUES)}
    header = replace(
        event.header,
        position=mark[t.POSITION],
        server_id=mark[t.SERVER],
        size=mark[t.SIZE],
        end=mark[t.NEXT],
        timestamp=seconds,
    )
    gtid = transaction.gtid and _marked_gtid(transaction.gtid, mark[t.GTID])
    inside = replace(
        transaction,
        seqno=mark[t.SEQNO],
        start=replace(transaction.start, logpos=mark[t.START]),
        end=replace(transaction.end, logpos=mark[t.START] + mark[t.BYTES]),
        committed=(seconds + 86_400) * 1_000_000 + 123_456,
        gtid=gtid,
    )
    mark[t.STOP] = inside.end.logpos
    numbers = (*range(t.POSITION, t.TIME), t.STATEMENT)
    marks = {str(mark[slot]): slot for slot in numbers} | _times(header, inside)
    return _with_marked_fields(event, header, inside, mark), marks | ({str(gtid): t.GTID} if gtid else {})


def _times(header: EventHeader, transaction: Transaction) -> dict[str, int]:
    return {
        f"{header.time:%Y-%m-%d %H:%M:%S}": t.TIME,
        f"{header.time:%Y-%m-%dT%H:%M:%S}": t.TIME_ISO,
        f"{transaction.time:%Y-%m-%d %H:%M:%S.%f}": t.COMMITTED,
        f"{transaction.time:%Y-%m-%dT%H:%M:%S.%f}": t.COMMITTED_ISO,
    }


def _with_marked_fields(event: Event, header: EventHeader, transaction: Transaction, mark: dict[int, int]) -> Event:
    match event:
        case GtidEvent() | AnonymousGtidEvent():
            event = replace(
                event,
                last_committed=mark[t.LAST_COMMITTED],
                sequence_number=mark[t.SEQUENCE],
                immediate_commit=mark[t.IMMEDIATE],
                original_commit=mark[t.ORIGINAL],
            )
        case XidEvent():
            event = replace(event, xid=mark[t.XID])
        case QueryEvent():
            event = replace(event, thread_id=mark[t.THREAD], execution_time=mark[t.SECONDS])
        case RowsQueryEvent():
            event = replace(event, statement=str(mark[t.STATEMENT]))
        case RowsEvent():
            event = replace(event, staged=b"")
    if isinstance(event, GtidEvent | MariadbGtidEvent) and transaction.gtid:
        event = replace(event, gtid=transaction.gtid)
    return replace(event, header=header, transaction=transaction)


def _marked_gtid(gtid: Gtid, mark: int) -> Gtid:
    return replace(gtid, sequence=mark) if isinstance(gtid, MariadbGtid) else replace(gtid, number=mark)
