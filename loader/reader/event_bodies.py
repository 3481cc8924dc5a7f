"""Parses events other than row events. A transaction has few of them, so this is plain Python.

Formats: MySQL source documentation, "Binary Log Events"; MariaDB's "Replication Protocol".
"""

from __future__ import annotations

from collections.abc import Callable

from loader.binlog.byte_cursor import Cursor
from loader.binlog.events.table_map import TableMap, read_table_map
from loader.binlog.events.xa import read_prepare
from loader.binlog.values.charsets import charset_of
from loader.errors import UnsupportedError
from loader.reader.events import (
    AnonymousGtidEvent,
    AppendBlockEvent,
    BeginLoadQueryEvent,
    BinlogCheckpointEvent,
    DeleteFileEvent,
    Event,
    EventHeader,
    ExecuteLoadQueryEvent,
    FormatDescriptionEvent,
    GtidEvent,
    GtidListEvent,
    HeartbeatEvent,
    IncidentEvent,
    IntvarEvent,
    MariadbGtidEvent,
    PreviousGtidsEvent,
    QueryEvent,
    RandEvent,
    RotateEvent,
    RowsQueryEvent,
    StopEvent,
    TableMapEvent,
    Transaction,
    TransactionPayloadEvent,
    UnknownEvent,
    UserVarEvent,
    XaPrepareEvent,
    XidEvent,
)
from loader.reader.gtids import read_gtid, read_gtid_list, read_mariadb_gtid, read_previous_gtids, read_tagged_gtid
from loader.reader.user_variables import KINDS

Made = Callable[[EventHeader, Transaction | None, bytes], Event]

_QUERY_HEAD = 13
"""Bytes of the fixed part of a QUERY event."""

OLD_FORMAT = 84
"""A format description with a longer body has a checksum algorithm."""


def read_body(header: EventHeader, transaction: Transaction | None, body: bytes, kind: int | None = None) -> Event:
    """Parse the body of an event, without checksum. `kind`: its type after expansion, if not that of the header.

    Raises:
        BinlogFormatError: the body is too short for its type. The error has no position.
    """
    return _MAKERS.get(header.type if kind is None else kind, _unknown)(header, transaction, body)


def _unknown(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return UnknownEvent(header, transaction, body)


def _format(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    version, server, created = cursor.number(2), cursor.take(50).split(b"\0")[0], cursor.number(4)
    checksum = len(body) > OLD_FORMAT and body[-1] == 1
    return FormatDescriptionEvent(header, transaction, version, server.decode("ascii", "replace"), created, checksum)


def _rotate(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    position = cursor.number(8)
    # MariaDB leaves bytes of an older, longer name behind a NUL.
    name = cursor.take(cursor.remaining).split(b"\0")[0].decode("utf-8", "surrogateescape")
    return RotateEvent(header, transaction, name, position)


def _stop(header: EventHeader, transaction: Transaction | None, _body: bytes) -> Event:
    return StopEvent(header, transaction)


def _query(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    thread, seconds = cursor.number(4), cursor.number(4)
    name, error = cursor.number(1), cursor.number(2)
    variables = cursor.take(cursor.number(2))
    schema = cursor.text(name)
    cursor.take(1)
    statement = cursor.take(cursor.remaining).decode("utf-8", "backslashreplace")
    return QueryEvent(header, transaction, thread, seconds, error, schema, statement, variables)


def _begin_load(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    return BeginLoadQueryEvent(header, transaction, cursor.number(4), cursor.take(cursor.remaining))


def _append_block(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    return AppendBlockEvent(header, transaction, cursor.number(4), cursor.take(cursor.remaining))


def _delete_file(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return DeleteFileEvent(header, transaction, Cursor(body).number(4))


def _execute_load(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    """The head of a query, then four fields about the file, then the rest of a query."""
    head = Cursor(body)
    head.take(_QUERY_HEAD)
    file_id, start, end, duplicates = head.number(4), head.number(4), head.number(4), head.number(1)
    query = vars(_query(header, transaction, body[:_QUERY_HEAD] + body[head.offset :]))
    return ExecuteLoadQueryEvent(**query, file_id=file_id, name_start=start, name_end=end, duplicates=duplicates)


def _gtid(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    f = read_gtid(body)
    return GtidEvent(
        header, transaction, f.gtid, f.last_committed, f.sequence_number, f.immediate_commit, f.original_commit
    )


def _tagged(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    f = read_tagged_gtid(body)
    return GtidEvent(
        header, transaction, f.gtid, f.last_committed, f.sequence_number, f.immediate_commit, f.original_commit
    )


def _anonymous(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    f = read_gtid(body)
    return AnonymousGtidEvent(
        header, transaction, f.last_committed, f.sequence_number, f.immediate_commit, f.original_commit
    )


def _mariadb_gtid(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    gtid, flags = read_mariadb_gtid(body, header.server_id)
    return MariadbGtidEvent(header, transaction, gtid, flags)


def _previous(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return PreviousGtidsEvent(header, transaction, read_previous_gtids(body))


def _gtid_list(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return GtidListEvent(header, transaction, read_gtid_list(body))


def _table_map(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    table = read_table_map(body)
    number = int.from_bytes(body[:6], "little")
    return TableMapEvent(header, transaction, number, table.name, _wire_types(table))


def _wire_types(table: TableMap) -> tuple[int, ...]:
    """Return the column types; the raw types if one is unknown, since the table may not be wanted."""
    try:
        return tuple(kind for kind, _ in table.types)
    except UnsupportedError:
        return tuple(table.kinds)


def _payload(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    values: dict[int, int] = {}
    while field := cursor.length_encoded():
        values[field] = Cursor(cursor.take(cursor.length_encoded())).length_encoded()
    return TransactionPayloadEvent(header, transaction, values.get(2, 0), values.get(3, values.get(1, 0)))


def _xid(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return XidEvent(header, transaction, Cursor(body).number(8))


def _xa_prepare(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return XaPrepareEvent(header, transaction, *read_prepare(body))


def _incident(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    kind = cursor.number(2)
    return IncidentEvent(header, transaction, kind, cursor.text(cursor.number(1)) if cursor.remaining else "")


def _rows_query(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    # The first byte is a length, which is wrong for long statements and not needed.
    return RowsQueryEvent(header, transaction, body[1:].decode("utf-8", "backslashreplace"))


def _annotate(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return RowsQueryEvent(header, transaction, body.decode("utf-8", "backslashreplace"))


def _intvar(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    return IntvarEvent(header, transaction, cursor.number(1), cursor.number(8))


def _rand(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    return RandEvent(header, transaction, cursor.number(8), cursor.number(8))


def _user_var(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    name = cursor.text(cursor.number(4))
    if cursor.number(1):
        return UserVarEvent(header, transaction, name, None)
    number, collation = cursor.number(1), cursor.number(4)
    value = cursor.take(cursor.number(4))
    kind = KINDS.get(number, f"type {number}")
    charset = charset_of(collation) if kind == "string" else ""
    # Servers before 5.6 write no flags; 1 says that an integer is unsigned.
    unsigned = bool(cursor.remaining and cursor.number(1) & 1)
    return UserVarEvent(header, transaction, name, value, kind, charset, unsigned)


def _checkpoint(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    cursor = Cursor(body)
    return BinlogCheckpointEvent(header, transaction, cursor.text(cursor.number(4)))


def _heartbeat(header: EventHeader, transaction: Transaction | None, body: bytes) -> Event:
    return HeartbeatEvent(header, transaction, body.decode("utf-8", "surrogateescape"))


_MAKERS: dict[int, Made] = {
    2: _query, 3: _stop, 4: _rotate, 5: _intvar, 9: _append_block, 11: _delete_file, 13: _rand, 14: _user_var,
    15: _format, 16: _xid, 17: _begin_load, 18: _execute_load, 19: _table_map,
    26: _incident, 27: _heartbeat, 29: _rows_query, 33: _gtid, 34: _anonymous, 35: _previous, 38: _xa_prepare,
    40: _payload, 42: _tagged, 160: _annotate, 161: _checkpoint, 162: _mariadb_gtid, 163: _gtid_list,
}  # fmt: skip
