"""Events as text for people, as Tungsten's `thl list` shows them: a block per transaction, its statements and rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from loader.errors import UnsupportedError
from loader.reader.events import (
    Event,
    FormatDescriptionEvent,
    QueryEvent,
    RowsEvent,
    RowsQueryEvent,
    Transaction,
)
from loader.reader.rows import Row
from loader.reader.values import Value
from loader.types.column_type import Form
from loader.types.warehouse import form
from loader.visible_text import visible as hidden

_ACTIONS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}
_CONTROL = {"BEGIN", "COMMIT", "ROLLBACK"}


class Listing:
    """Lines of text for each event. With `headers` every event has a line of its own."""

    def __init__(self, headers: bool) -> None:
        self._headers = headers
        self._seqno = -1
        self._statements = 0
        self._server = ""

    def lines(self, event: Event) -> Iterator[str]:
        """What is shown for an event.

        Raises:
            StagedDataError: see RowsEvent.
        """
        yield from map(hidden, self._lines(event))

    def _lines(self, event: Event) -> Iterator[str]:
        if isinstance(event, FormatDescriptionEvent):
            self._server = event.server_version
        transaction = event.transaction
        if transaction is None:
            yield f"EVENT = {event.header.name} at {place(event)}"
            if self._headers:
                yield _header(event)
            yield from (f"- {name.upper()} = {shown}" for name, shown in details(event))
            return
        if transaction.seqno != self._seqno:
            self._seqno, self._statements = transaction.seqno, 0
            yield from self._start(transaction, event)
        if self._headers:
            yield _header(event)
        if isinstance(event, RowsEvent):
            yield from _rows(event)
        elif isinstance(event, QueryEvent) and event.statement not in _CONTROL:
            yield from self._statement(event.statement, event.schema)
        elif isinstance(event, RowsQueryEvent):
            yield f"- QUERY = {visible(event.statement)}"

    def _start(self, transaction: Transaction, event: Event) -> Iterator[str]:
        metadata = {
            "server_version": self._server,
            "bytes": transaction.end.logpos - transaction.start.logpos,
            "last_committed": getattr(event, "last_committed", None),
            "sequence_number": getattr(event, "sequence_number", None),
            "rolled_back": transaction.rolled_back or None,
            "prepared": transaction.prepared or None,
        }
        yield f"SEQ# = {transaction.seqno}"
        yield f"- TIME = {transaction.time:%Y-%m-%d %H:%M:%S.%f}"
        yield f"- EVENTID = {event.header.file}:{transaction.start.logpos}-{transaction.end.logpos}"
        yield f"- SOURCEID = {event.header.server_id}"
        if transaction.gtid:
            yield f"- GTID = {transaction.gtid}"
        known = (f"{name}={value}" for name, value in metadata.items() if value not in (None, ""))
        yield f"- METADATA = [{';'.join(known)}]"

    def _statement(self, statement: str, schema: str) -> Iterator[str]:
        if schema:
            yield f"- SCHEMA = {visible(schema)}"
        yield f"- SQL({self._statements}) = {visible(statement)}"
        self._statements += 1


def place(event: Event) -> str:
    """`binlog.000054:123`."""
    return f"{event.header.file}:{event.header.position}"


def details(event: Event) -> Iterator[tuple[str, str]]:
    """The fields of an event's own, as text."""
    for field in dataclasses.fields(event):
        if field.name not in {"header", "transaction", "staged"}:
            yield field.name, _text(getattr(event, field.name))


def visible(text: str) -> str:
    """Text without characters that would act on a terminal, those of a line feed and a tab among them."""
    return hidden(text.replace("\\", "\\\\"))


def literal(value: Value) -> str:
    """A value: NULL, numbers and times bare, texts in quotes, bytes as 0x..., and what an image leaves out."""
    if value.is_absent:
        return "(not logged)"
    if value.text is None:
        return "NULL"
    try:
        kind = form(value.column)
    except UnsupportedError:
        kind = Form.TEXT
    if kind is Form.HEX:
        return f"0x{value.text}"
    return f"'{visible(value.text)}'" if kind is Form.TEXT else value.text


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else visible(str(value))


def _header(event: Event) -> str:
    header = event.header
    inner = f" inner {header.inner}" if header.inner >= 0 else ""
    return (
        f"# {place(event)}{inner} {header.name} time {header.time:%Y-%m-%d %H:%M:%S} server {header.server_id}"
        f" size {header.size} end {header.end} flags 0x{header.flags:04x}"
    )


def _rows(event: RowsEvent) -> Iterator[str]:
    if event.schema is None:
        return
    for number, change in enumerate(event):
        if number == 0:
            yield "- SQL ="
            yield f" - ACTION = {_ACTIONS[change.op]}"
            yield f" - SCHEMA = {visible(event.table.schema)}"
            yield f" - TABLE = {visible(event.table.table)}"
        yield f" - ROW# = {number}"
        yield from _image("COL", change.after)
        yield from _image("KEY", change.before)


def _image(word: str, row: Row | None) -> Iterator[str]:
    """`COL`: the row as it became. `KEY`: as it was."""
    for number, value in enumerate(row or (), 1):
        yield f"  - {word}({number}: {visible(value.column.name)}) = {literal(value)}"
