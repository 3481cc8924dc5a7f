"""Refusing to skip a part of an XA transaction: its rows and its outcome are separate transactions of the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from loader.errors import UnsupportedError, UsageError
from loader.model.position import Interval, Position
from loader.model.table import TableName
from loader.pipeline.skips.content import table_options
from loader.staging.documents import Skip
from loader.staging.filters import CapturedTables
from loader.transport.base import Transport

if TYPE_CHECKING:
    from loader.extract.transaction_search import FoundTransaction
    from loader.extract.xa_events import Decided


def check_not_xa(found: FoundTransaction, transport: Transport, shift: int, captures: CapturedTables) -> None:
    """Check that a transaction is no part of an XA transaction.

    Args:
        found: the transaction.
        transport: of its log.
        shift: of its generation.
        captures: the captured tables.

    Raises:
        UnsupportedError: it prepares or commits one. The error names the captured tables of the XA transaction.
        UsageError: it rolls one back.
    """
    from loader.extract.xa_events import Decided, Prepared

    for note in found.notes:
        if isinstance(note, Decided) and not note.commit:
            raise UsageError(
                "an XA transaction that was rolled back changes nothing, so there is nothing to skip",
                hint="look at it with: loader inspect",
                position=found.begin,
                gtid=found.gtid,
            )
        if isinstance(note, Decided | Prepared):
            rows = found if isinstance(note, Prepared) else _prepared(found, note, transport, shift)
            tables = filter(captures, rows.events if rows else ())
            raise _xa_error(found, note.xid, tables, committed=isinstance(note, Decided))


def _prepared(found: FoundTransaction, decided: Decided, transport: Transport, shift: int) -> FoundTransaction | None:
    """Return the transaction with the rows of a commit, or None if the log does not have it any more."""
    from loader.extract.transaction_search import at_position, find_transaction
    from loader.extract.xa.prepare_search import find_prepared

    for group in find_prepared(transport, found.begin, Skip(), [decided]):
        start, stop = Position.at(group.file, group.start), Position.at(group.file, group.end)
        return find_transaction(transport, Interval(start, stop), shift, at_position(start))
    return None


def _xa_error(found: FoundTransaction, xid: str, tables: Iterable[TableName], *, committed: bool) -> UnsupportedError:
    what = "commits" if committed else "prepares"
    options = table_options(tables)
    return UnsupportedError(
        "a part of an XA transaction cannot be skipped",
        why=f"this transaction {what} the XA transaction {xid}, whose rows and commit are separate in the log",
        hint=f"{'' if committed else 'wait for its XA COMMIT; '}correct its rows on the server if they are wrong; then"
        f" load its tables again: loader initial-load {options} --again; then: loader run",
        position=found.begin,
        gtid=found.gtid,
    )
