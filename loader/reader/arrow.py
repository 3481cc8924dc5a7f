"""Changes of a table's rows as an Arrow table, or as a pandas data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from loader.errors import DataError, UsageError
from loader.model.table import Column, TableName, TableSchema
from loader.reader.events import Event, RowsEvent
from loader.reader.rows import Row, RowChange
from loader.reader.values import BYTES, PartialDate, Value

if TYPE_CHECKING:
    import pyarrow as pa

_SMALL_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_MOST_DIGITS = 38
"""Digits of Arrow's decimal128; MySQL has up to 65."""


def to_arrow(events: Iterable[Event], table: str) -> pa.Table:
    """Return the changes of one table, a row for each inserted, updated or deleted row.

    The columns `_op` (`I`, `U`, `D`), `_seqno` and `_row_offset` (int64) and `_absent` (the names of columns that the
    row image leaves out, which are null) come first, then the table's columns: a deleted row as it was, others as they
    became. DATE is date32, DATETIME and TIMESTAMP are timestamp[us] (TIMESTAMP in UTC), TIME is duration[us], SET is
    list<string>, binary types are binary, everything else that is no number is string.

    Args:
        events: of a log, in their order; other events are ignored.
        table: `schema.table`.

    Raises:
        UsageError: pyarrow is not installed.
        DataError: no row of the table; its columns change; a value that Arrow does not have, such as 0000-00-00.
        LoaderError: what reading the log raises.
    """
    pa = _pyarrow()
    name, schema = TableName.parse(table), None
    heads: list[tuple[str, int, int, list[str]]] = []
    columns: list[list[Any]] = []
    for event in events:
        if not (isinstance(event, RowsEvent) and event.table == name and event.schema):
            continue
        if schema is None:
            schema = event.schema
            columns = [[] for _ in schema.columns]
        _check_same(schema, event)
        for change in event:
            row = _row_of(change)
            seqno = event.transaction.seqno if event.transaction else 0
            heads.append((change.op, seqno, change.row_offset, [v.column.name for v in row if v.is_absent]))
            for values, value in zip(columns, row, strict=True):
                values.append(None if value.is_absent else _plain(value, event))
    if schema is None:
        raise DataError(
            "the log has no row of the table", hint="loader inspect URI --stats lists its tables", table=name
        )
    types = [
        ("_op", pa.string()),
        ("_seqno", pa.int64()),
        ("_row_offset", pa.int64()),
        ("_absent", pa.list_(pa.string())),
    ]
    types += [(column.name, arrow_type(pa, column)) for column in schema.columns]
    arrays = [*([head[n] for head in heads] for n in range(4)), *columns]
    return pa.table(list(_arrays(pa, arrays, types)), schema=pa.schema(types))


def to_pandas(events: Iterable[Event], table: str) -> Any:
    """Return the table of `to_arrow` as a `pandas.DataFrame`; pandas must be installed.

    Raises:
        LoaderError: see `to_arrow`.
    """
    return to_arrow(events, table).to_pandas()


def _arrays(pa: Any, arrays: list[list[Any]], types: list[tuple[str, Any]]) -> Iterator[Any]:
    for values, (name, kind) in zip(arrays, types, strict=True):
        try:
            yield pa.array(values, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise DataError("a value cannot be converted to Arrow", why=str(error), column=name) from error


def _row_of(change: RowChange) -> Row:
    row = change.after or change.before
    if row is None:
        raise ValueError("a change has an image before or after it")
    return row


def _check_same(schema: TableSchema, event: RowsEvent) -> None:
    if event.schema != schema:
        raise DataError(
            "the columns of the table change in the log",
            hint="read the log before and after that position separately",
            table=event.table,
            file=event.header.file,
            position=event.header.position,
        )


def _plain(value: Value, event: RowsEvent) -> Any:
    found = value.native()
    if isinstance(found, PartialDate) or value.is_unreadable:
        raise DataError(
            f"{value.text!r} cannot be converted to Arrow",
            hint="read the rows of the log one by one, and take Value.as_text",
            table=event.table,
            column=value.column.name,
            file=event.header.file,
            position=event.header.position,
        )
    return sorted(found) if isinstance(found, frozenset) else found


def arrow_type(pa: Any, column: Column) -> Any:
    """Return the type of a column in Arrow."""
    kind = column.type
    if kind in _SMALL_INTEGERS:
        return getattr(pa, f"{'u' if column.unsigned else ''}int{_SMALL_INTEGERS[kind]}")()
    if kind == "decimal":
        return (pa.decimal128 if column.size <= _MOST_DIGITS else pa.decimal256)(column.size, column.scale)
    if kind in BYTES:
        return pa.binary()
    plain = {
        "float": pa.float32(), "double": pa.float64(), "bit": pa.uint64(), "year": pa.uint16(), "date": pa.date32(),
        "datetime": pa.timestamp("us"), "timestamp": pa.timestamp("us", "UTC"), "time": pa.duration("us"),
        "set": pa.list_(pa.string()),
    }  # fmt: skip
    return plain.get(kind, pa.string())


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise UsageError(
            "pyarrow is not installed", why=str(error), hint="pip install 'binlog-loader[spark]'"
        ) from error
    return pa
