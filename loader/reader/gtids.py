"""Parses the events that have GTIDs: of one transaction, and of all files before a file.

Formats: MySQL's `Gtid_event` and `Previous_gtids_log_event` (mysql/binlog/event/control_events.h), the tagged form by
the server's serialization library (mysql/serialization: numbers of a variable length, fields by number); MariaDB's
"GTID_EVENT" and "GTID_LIST_EVENT".
"""

from __future__ import annotations

from dataclasses import dataclass

from loader.binlog.byte_cursor import Cursor
from loader.errors import BinlogFormatError
from loader.model.gtid import (
    GtidSet,
    MariadbGtid,
    MysqlGtid,
    mariadb_set,
    mysql_set,
    source_of,
)

_TAGGED_SET = 1
_HAS_ORIGINAL = 1 << 55


@dataclass(frozen=True)
class GtidFields:
    """The fields of MySQL's GTID event; see GtidEvent."""

    gtid: MysqlGtid
    last_committed: int
    sequence_number: int
    immediate_commit: int
    original_commit: int


def read_gtid(body: bytes) -> GtidFields:
    """Parse the body of a GTID or ANONYMOUS_GTID event.

    Raises:
        BinlogFormatError: the body is too short. All functions here raise it.
    """
    cursor = Cursor(body)
    cursor.take(1)
    gtid = MysqlGtid(source_of(cursor.take(16)), cursor.number(8))
    logical = (0, 0)
    if cursor.remaining >= 17:
        cursor.take(1)
        logical = (cursor.number(8), cursor.number(8))
    immediate = original = 0
    if cursor.remaining >= 7:
        immediate = original = cursor.number(7)
        if immediate & _HAS_ORIGINAL:
            immediate, original = immediate ^ _HAS_ORIGINAL, cursor.number(7)
    return GtidFields(gtid, *logical, immediate, original)


def read_tagged_gtid(body: bytes) -> GtidFields:
    """Parse the body of a GTID_TAGGED event."""
    cursor = Cursor(body)
    for _ in ("version", "size", "last field that must be known"):
        _number(cursor)
    fields: dict[int, int] = {}
    uuid, tag = b"", ""
    while cursor.remaining:
        field = _number(cursor)
        if field == 1:
            uuid = bytes(_number(cursor) & 0xFF for _ in range(16))
        elif field == 3:
            tag = cursor.text(_number(cursor))
        elif field <= 11:
            value = _number(cursor)
            fields[field] = _signed(value) if field in (2, 4, 5) else value
        else:
            break  # fields of later servers, which may be ignored
    if not uuid or 2 not in fields:
        raise BinlogFormatError("a GTID event has no GTID")
    immediate = fields.get(6, 0)
    return GtidFields(
        MysqlGtid(source_of(uuid, tag), fields[2]),
        fields.get(4, 0),
        fields.get(5, 0),
        immediate,
        fields.get(7, immediate),
    )


def read_mariadb_gtid(body: bytes, server_id: int) -> tuple[MariadbGtid, int]:
    """Parse the body of MariaDB's GTID event; return the GTID and its flags. `server_id` is that of the header."""
    cursor = Cursor(body)
    sequence, domain, flags = cursor.number(8), cursor.number(4), cursor.number(1)
    return MariadbGtid(domain, server_id, sequence), flags


def read_previous_gtids(body: bytes) -> GtidSet:
    """Parse the body of a PREVIOUS_GTIDS event."""
    cursor = Cursor(body)
    head = cursor.take(8)
    tagged = head[7] == _TAGGED_SET
    count = int.from_bytes(head[1:7] if tagged else head, "little")
    parts = []
    for _ in range(count):
        uuid = cursor.take(16)
        source = source_of(uuid, cursor.text(_number(cursor)) if tagged else "")
        parts += [(source, cursor.number(8), cursor.number(8) - 1) for _ in range(cursor.number(8))]
    return mysql_set(parts)


def read_gtid_list(body: bytes) -> GtidSet:
    """Parse the body of a GTID_LIST event."""
    cursor = Cursor(body)
    count = cursor.number(4) & 0x0FFFFFFF
    found = []
    for _ in range(count):
        domain, server, sequence = cursor.number(4), cursor.number(4), cursor.number(8)
        found.append(MariadbGtid(domain, server, sequence))
    return mariadb_set(found)


def _number(cursor: Cursor) -> int:
    """Parse a number. The trailing one-bits of its first byte count the bytes after it; the rest is the value."""
    first = cursor.number(1)
    more = 0
    while first >> more & 1:
        more += 1
    rest = cursor.number(more)
    return rest if more == 8 else (first | rest << 8) >> (more + 1)


def _signed(value: int) -> int:
    return -(value >> 1) - 1 if value & 1 else value >> 1
