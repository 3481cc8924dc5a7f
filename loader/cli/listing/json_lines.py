"""Events as JSON, a line each, with typed values.

Integers, FLOAT and DOUBLE are numbers; DECIMAL, dates and times are text as staged, bytes are hex, a SET is a list,
NULL is null, and a column that the row image leaves out is left out.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from loader.model.gtid import MariadbGtid, MariadbGtidSet, MysqlGtid, MysqlGtidSet
from loader.model.position import Position
from loader.model.table import TableName
from loader.reader.events import Event, RowsEvent, Transaction
from loader.reader.rows import Row
from loader.reader.values import Value
from loader.visible_text import exact_json

_NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year"}
_SHOWN = (MysqlGtid, MariadbGtid, MysqlGtidSet, MariadbGtidSet, Position, TableName)
_OWN = {"header", "transaction", "staged", "schema"}


def json_line(event: Event, headers: bool) -> str:
    """The line of an event; `headers` adds what else its header says.

    Raises:
        StagedDataError: see RowsEvent.
    """
    header = event.header
    found: dict[str, Any] = {"type": header.name, "file": header.file, "position": header.position}
    if header.inner >= 0:
        found["inner"] = header.inner
    found |= {"time": header.time.isoformat(), "server_id": header.server_id}
    if headers:
        found["header"] = {"size": header.size, "end": header.end, "flags": header.flags, "type": header.type}
    if event.transaction:
        found |= _transaction(event.transaction)
    if isinstance(event, RowsEvent):
        found["table"] = str(event.table)
        found["rows"] = [
            {
                "op": change.op,
                "row_offset": change.row_offset,
                "before": _row(change.before),
                "after": _row(change.after),
            }
            for change in event
        ]
    else:
        fields = (field.name for field in dataclasses.fields(event) if field.name not in _OWN)
        found |= {name: _plain(getattr(event, name)) for name in fields}
        if hasattr(event, "schema"):
            found["schema"] = event.schema
    return exact_json(found)


def typed(value: Value) -> Any:
    """The value as JSON has it."""
    kind, text = value.column.type, value.text
    if text is None:
        return None
    if kind in _NUMBERS:
        return int(text)
    if kind in {"float", "double"}:
        return float(text)
    if kind == "set":
        return text.split(",") if text else []
    return text


def _transaction(transaction: Transaction) -> dict[str, Any]:
    found: dict[str, Any] = {"seqno": transaction.seqno, "committed": transaction.time.isoformat()}
    if transaction.gtid:
        found["transaction_gtid"] = str(transaction.gtid)
    outcomes = {"rolled_back": transaction.rolled_back, "prepared": transaction.prepared}
    return found | {name: True for name, value in outcomes.items() if value}


def _row(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {value.column.name: typed(value) for value in row if not value.is_absent}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, _SHOWN):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
