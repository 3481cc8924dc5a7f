"""Events as JSON, a line each, with typed values.

Integers, FLOAT and DOUBLE are numbers; DECIMAL, dates and times are text as staged, bytes are hex, a SET is a list,
NULL is null. A column that the row image leaves out is left out. An unreadable value is an object: {"hex": "98"}.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

from loader.binlog.listing.fields import INTEGER, LABELS, REAL, STRING
from loader.cli.listing.event_templates import Sample
from loader.cli.listing.row_formats import RowFormats, ShownColumn
from loader.cli.listing.text import reason
from loader.model.gtid import MariadbGtid, MariadbGtidSet, MysqlGtid, MysqlGtidSet
from loader.model.position import Position
from loader.model.table import Column, TableName, TableSchema
from loader.reader.events import Event, IntvarEvent, RandEvent, RowsEvent, Transaction, UserVarEvent, XidEvent
from loader.reader.rows import Row
from loader.reader.values import REAL_NUMBERS, WHOLE_NUMBERS, Value
from loader.visible_text import exact_json

_NO_ROWS = "[]}"
"""How the line of a row event without rows ends."""
_SHOWN = (MysqlGtid, MariadbGtid, MysqlGtidSet, MariadbGtidSet, Position, Decimal)
_OWN = {"header", "transaction", "staged", "schema", "error"}
_EXACT_BITS = 53
"""Whole numbers of more bits are not exact in programs that read JSON numbers as doubles."""


class JsonLines:
    """Lines of JSON for events.

    Args:
        headers: add everything that the event's header says.
        bigint_as_text: write integers of 64 bits as strings: BIGINT, BIT of more than 53 bits, XIDs, INTVAR and RAND.
    """

    json = True

    def __init__(self, headers: bool, *, bigint_as_text: bool = False) -> None:
        self._headers = headers
        self._bigint_as_text = bigint_as_text
        self.formats = RowFormats(self._shown_columns, json=True)

    def text(self, event: Event) -> str:
        """Return the line of an event.

        Raises:
            StagedDataError: see RowsEvent.
        """
        rows = self.formats.rows(event) if isinstance(event, RowsEvent) else None
        line = exact_json(self._document(event, with_rows=rows is None))
        return f"{line.removesuffix(_NO_ROWS)}[{rows}]}}\n" if rows else f"{line}\n"

    def sample(self, event: Event, *, fresh: bool) -> Sample:
        """Return the line of an event without rows."""
        line = self.text(event)
        if not isinstance(event, RowsEvent):
            return Sample(line)
        return Sample(line.removesuffix(f"{_NO_ROWS}\n") + "[", "]}\n")

    def resume(self, seqno: int) -> None:
        """Do nothing: a line does not depend on the lines before it."""

    def _document(self, event: Event, *, with_rows: bool) -> dict[str, Any]:
        header = event.header
        found: dict[str, Any] = {"type": header.name, "file": header.file, "position": header.position}
        if header.inner >= 0:
            found["inner"] = header.inner
        found |= {"time": header.time.isoformat(), "server_id": header.server_id}
        if self._headers:
            found["header"] = {"size": header.size, "end": header.end, "flags": header.flags, "type": header.type}
        if event.transaction:
            found |= _transaction(event.transaction)
        if isinstance(event, RowsEvent):
            return found | self._rows(event, with_rows=with_rows)
        return found | self._fields(event)

    def _rows(self, event: RowsEvent, *, with_rows: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"schema": event.table.schema, "table": event.table.table}
        if event.schema:
            found |= _described(event.schema)
        if event.error:
            found["unreadable"] = reason(event.error)
        found["rows"] = [
            {
                "op": change.op,
                "row_offset": change.row_offset,
                "before": self._row(change.before),
                "after": self._row(change.after),
            }
            for change in (event if with_rows else ())
        ]
        return found

    def _shown_columns(self, schema: TableSchema) -> list[ShownColumn]:
        """Return how rows of a table are shown: each value after the name of its column."""
        return [ShownColumn(self._kind(column), f", {exact_json(column.name)}: ") for column in schema.columns]

    def _kind(self, column: Column) -> int:
        """Return how the kernels show a column, as `typed` does."""
        if column.type in WHOLE_NUMBERS:
            return STRING if self._bigint_as_text and _is_wide(column) else INTEGER
        return REAL if column.type in REAL_NUMBERS else LABELS if column.type == "set" else STRING

    def _row(self, row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        return {value.column.name: self._value(value) for value in row if not value.is_absent}

    def _value(self, value: Value) -> Any:
        found = typed(value)
        return str(found) if self._bigint_as_text and isinstance(found, int) and _is_wide(value.column) else found

    def _fields(self, event: Event) -> dict[str, Any]:
        found = {
            field.name: _plain(getattr(event, field.name))
            for field in dataclasses.fields(event)
            if field.name not in _OWN
        }
        if isinstance(event, UserVarEvent):
            found["value"] = _plain(event.native())
        if isinstance(table := getattr(event, "table", None), TableName):
            found |= {"schema": table.schema, "table": table.table}
        elif hasattr(event, "schema"):
            found["schema"] = event.schema
        wide = self._bigint_as_text and isinstance(event, XidEvent | IntvarEvent | RandEvent | UserVarEvent)
        return {
            name: str(value) if wide and type(value) is int and name != "kind" else value
            for name, value in found.items()
        }


def typed(value: Value) -> Any:
    """Return the value as JSON has it."""
    kind, text = value.column.type, value.text
    if text is None:
        return None
    if value.is_unreadable:
        return {"hex": value.raw.hex()}
    if kind in WHOLE_NUMBERS:
        return int(text)
    if kind in REAL_NUMBERS:
        return float(text)
    if kind == "set":
        return text.split(",") if text else []
    return text


def _is_wide(column: Column) -> bool:
    return column.type == "bigint" or (column.type == "bit" and column.size > _EXACT_BITS)


def _described(schema: TableSchema) -> dict[str, Any]:
    columns = [
        {"name": column.name, "type": str(column)} | ({"charset": column.charset} if column.charset else {})
        for column in schema.columns
    ]
    return {"columns": columns, "key": list(schema.key)}


def _transaction(transaction: Transaction) -> dict[str, Any]:
    found: dict[str, Any] = {"seqno": transaction.seqno, "committed": transaction.time.isoformat()}
    if transaction.gtid:
        found["transaction_gtid"] = str(transaction.gtid)
    outcomes = {
        "rolled_back": transaction.rolled_back,
        "prepared": transaction.prepared,
        "damaged": transaction.is_cut,
    }
    return found | {name: True for name, value in outcomes.items() if value}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, _SHOWN):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
