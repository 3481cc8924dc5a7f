"""Events as text for people, as Tungsten's `thl list` shows them: a block per transaction, its statements and rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from loader.binlog.listing.fields import BARE, HEX, QUOTED
from loader.cli.listing.event_templates import Sample
from loader.cli.listing.row_formats import RowFormats, ShownColumn
from loader.errors import DataError, UnsupportedError
from loader.model.table import Column, TableSchema
from loader.reader.events import (
    AppendBlockEvent,
    BeginLoadQueryEvent,
    DeleteFileEvent,
    DeleteRowsEvent,
    Event,
    FormatDescriptionEvent,
    IncidentEvent,
    IntvarEvent,
    QueryEvent,
    RandEvent,
    RowsEvent,
    RowsQueryEvent,
    Transaction,
    UpdateRowsEvent,
    UserVarEvent,
    XaPrepareEvent,
    XidEvent,
)
from loader.reader.rows import Row
from loader.reader.values import Value
from loader.types.column_type import Form
from loader.types.warehouse import form
from loader.visible_text import visible as hidden

_BEGIN = "BEGIN"
_ENDS = {"COMMIT", "ROLLBACK"}


class Listing:
    """Lines of text for each event. With `headers` every event has a line of its own."""

    json = False

    def __init__(self, headers: bool) -> None:
        self._headers = headers
        self._seqno = -1
        self._statements = 0
        self._server = ""
        self.formats = RowFormats(_shown_columns, json=False)

    def text(self, event: Event) -> str:
        """Return the lines of an event.

        Raises:
            StagedDataError: see RowsEvent.
        """
        rows = self.formats.rows(event) if isinstance(event, RowsEvent) else None
        lines = map(hidden, self._lines(event, with_rows=rows is None))
        return "".join(f"{line}\n" for line in lines) + (rows or "")

    def sample(self, event: Event, *, fresh: bool) -> Sample:
        """Return the lines of an event without rows. `fresh`: it is the first listed one of its transaction."""
        listing = Listing(self._headers)
        listing._server = self._server
        if event.transaction and not fresh:
            listing._seqno = event.transaction.seqno
        return Sample(listing.text(event))

    def resume(self, seqno: int) -> None:
        """Note that events up to this transaction are listed."""
        if seqno != self._seqno:
            self._seqno, self._statements = seqno, 0

    def _lines(self, event: Event, *, with_rows: bool) -> Iterator[str]:
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
            yield from _heading(event)
            yield from _rows(event) if with_rows else ()
        elif isinstance(event, QueryEvent):
            yield from self._query(event)
        else:
            yield from _inside(event)

    def _start(self, transaction: Transaction, event: Event) -> Iterator[str]:
        metadata = {
            "server_version": self._server,
            "bytes": transaction.end.logpos - transaction.start.logpos,
            "last_committed": getattr(event, "last_committed", None),
            "sequence_number": getattr(event, "sequence_number", None),
            "rolled_back": transaction.rolled_back or None,
            "prepared": transaction.prepared or None,
            "damaged": transaction.is_cut or None,
        }
        yield f"SEQ# = {transaction.seqno}"
        yield f"- TIME = {transaction.time:%Y-%m-%d %H:%M:%S.%f}"
        yield f"- EVENTID = {event.header.file}:{transaction.start.logpos}-{transaction.end.logpos}"
        yield f"- SOURCEID = {event.header.server_id}"
        if transaction.gtid:
            yield f"- GTID = {transaction.gtid}"
        known = (f"{name}={value}" for name, value in metadata.items() if value not in (None, ""))
        yield f"- METADATA = [{';'.join(known)}]"

    def _query(self, event: QueryEvent) -> Iterator[str]:
        if event.statement == _BEGIN:
            return
        if event.statement in _ENDS:
            yield f"- END = {event.statement}"
            return
        if event.schema:
            yield f"- SCHEMA = {visible(event.schema)}"
        yield f"- SQL({self._statements}) = {visible(event.statement)}"
        self._statements += 1


def place(event: Event) -> str:
    """Return `binlog.000054:123`."""
    return f"{event.header.file}:{event.header.position}"


def details(event: Event) -> Iterator[tuple[str, str]]:
    """Return names and values of the fields that only this class of event has, as text."""
    for field in dataclasses.fields(event):
        if field.name not in {"header", "transaction", "staged"}:
            yield field.name, _text(getattr(event, field.name))


def visible(text: str) -> str:
    """Return text with escapes for characters that act on a terminal, among them line feeds and tabs."""
    return hidden(text.replace("\\", "\\\\"))


def literal(value: Value) -> str:
    """Return a value: NULL, numbers and times bare, texts in quotes, bytes as 0x..., a mark if absent or unreadable."""
    if value.is_absent:
        return "(not logged)"
    if value.text is None:
        return "NULL"
    if value.is_unreadable:
        return f"0x{value.raw.hex()} (unreadable)"
    kind = _form(value.column)
    if kind is Form.HEX:
        return f"0x{value.text}"
    return _quoted(value.text) if kind is Form.TEXT else value.text


def _form(column: Column) -> Form:
    try:
        return form(column)
    except UnsupportedError:
        return Form.TEXT


def _quoted(text: str) -> str:
    return f"'{visible(text)}'"


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else visible(str(value))


def _header(event: Event) -> str:
    header = event.header
    inner = f" inner {header.inner}" if header.inner >= 0 else ""
    return (
        f"# {place(event)}{inner} {header.name} time {header.time:%Y-%m-%d %H:%M:%S} server {header.server_id}"
        f" size {header.size} end {header.end} flags 0x{header.flags:04x}"
    )


def _inside(event: Event) -> Iterator[str]:
    """Yield the line of an event of a transaction that is neither a statement nor a change of rows."""
    match event:
        case RowsQueryEvent():
            yield f"- QUERY = {visible(event.statement)}"
        case IntvarEvent():
            yield f"- INTVAR = {event.variable} {event.value}"
        case RandEvent():
            yield f"- RAND = {event.seed1} {event.seed2}"
        case UserVarEvent():
            yield f"- USER_VAR = @{visible(event.name)} {_variable(event)}"
        case BeginLoadQueryEvent() | AppendBlockEvent():
            yield f"- LOAD_FILE = {event.file_id} {len(event.data)} bytes"
        case DeleteFileEvent():
            yield f"- DELETE_FILE = {event.file_id}"
        case IncidentEvent():
            yield f"- INCIDENT = {event.incident} {visible(event.message)}"
        case XidEvent():
            yield f"- END = XID {event.xid}"
        case XaPrepareEvent():
            yield f"- END = XA {'COMMIT ONE PHASE' if event.one_phase else 'PREPARE'} {event.xid}"


def _variable(event: UserVarEvent) -> str:
    value = event.native()
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return _quoted(value) if isinstance(value, str) else str(value)


def _shown_columns(schema: TableSchema) -> list[ShownColumn]:
    """Return how rows of a table are shown: each value after the name and the number of its column."""
    kinds = {Form.HEX: HEX, Form.TEXT: QUOTED}
    return [
        ShownColumn(
            kinds.get(_form(column), BARE),
            _before_value("COL", number, column.name),
            _before_value("KEY" if column.name in schema.key else "OLD", number, column.name),
        )
        for number, column in enumerate(schema.columns, 1)
    ]


def _before_value(word: str, number: int, name: str) -> str:
    return f"  - {word}({number}: {visible(name)}) = "


def _heading(event: RowsEvent) -> Iterator[str]:
    if event.schema is None and event.error is None:
        return
    yield "- SQL ="
    yield f" - ACTION = {action(event)}"
    yield f" - SCHEMA = {visible(event.table.schema)}"
    yield f" - TABLE = {visible(event.table.table)}"
    if event.error:
        yield f" - UNREADABLE = {visible(reason(event.error))}"


def _rows(event: RowsEvent) -> Iterator[str]:
    key = set(event.schema.key) if event.schema else set[str]()
    for number, change in enumerate(event):
        yield f" - ROW# = {number}"
        yield from _image(change.after, "COL", "COL", key)
        yield from _image(change.before, "KEY", "OLD", key)


def action(event: RowsEvent) -> str:
    """Return INSERT, UPDATE or DELETE."""
    return (
        "UPDATE" if isinstance(event, UpdateRowsEvent) else "DELETE" if isinstance(event, DeleteRowsEvent) else "INSERT"
    )


def reason(error: DataError) -> str:
    """Return an error in one line."""
    column = f", column {error.where['column']}" if "column" in error.where else ""
    return f"{error.what}{column}" + (f": {error.why}" if error.why else "")


def _image(row: Row | None, key_word: str, word: str, key: set[str]) -> Iterator[str]:
    """`COL`: the row as it became. `KEY` and `OLD`: the columns of its key and the others, as they were."""
    for number, value in enumerate(row or (), 1):
        name = value.column.name
        yield _before_value(key_word if name in key else word, number, name) + literal(value)
