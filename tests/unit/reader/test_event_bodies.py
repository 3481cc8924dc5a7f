"""The bodies of events that are not rows, byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from loader.errors import BinlogFormatError
from loader.model.gtid import MariadbGtid, MysqlGtid
from loader.reader.event_bodies import read_body
from loader.reader.events import (
    AnonymousGtidEvent,
    BinlogCheckpointEvent,
    Event,
    EventHeader,
    GtidEvent,
    GtidListEvent,
    HeartbeatEvent,
    IncidentEvent,
    IntvarEvent,
    MariadbGtidEvent,
    PreviousGtidsEvent,
    RandEvent,
    RotateEvent,
    RowsQueryEvent,
    UnknownEvent,
    UserVarEvent,
    XaPrepareEvent,
)
from tests.unit.binlog.builder import LogBuilder
from tests.unit.reader.logs import UUID, names, read, written

RAW = bytes(range(16))
OTHER = "0f0e0d0c-0b0a-0908-0706-050403020100"


def header(kind: int) -> EventHeader:
    return EventHeader("binlog.000001", 4, 1, kind, 9, 100, 104, 0)


def number(value: int) -> bytes:
    """A number of MySQL's serialization library."""
    more = next(n for n in range(9) if n == 8 or value < 1 << (7 * (n + 1)))
    if more == 8:
        return b"\xff" + value.to_bytes(8, "little")
    return ((value << (more + 1)) | ((1 << more) - 1)).to_bytes(more + 1, "little")


def tagged(fields: dict[int, int], tag: str = "blue") -> bytes:
    body = number(0) + number(0)  # flags
    body += number(1) + b"".join(number(byte) for byte in RAW)
    body += number(2) + number(fields[2]) + number(3) + number(len(tag)) + tag.encode()
    for field in sorted(set(fields) - {2}):
        body += number(field) + number(fields[field])
    return number(1) + number(len(body)) + number(0) + body


def previous(sets: list[tuple[bytes, str, list[tuple[int, int]]]], *, tags: bool) -> bytes:
    count = len(sets)
    body = b"\1" + count.to_bytes(6, "little") + b"\1" if tags else count.to_bytes(8, "little")
    for uuid, tag, ranges in sets:
        body += uuid + (number(len(tag)) + tag.encode() if tags else b"") + len(ranges).to_bytes(8, "little")
        body += b"".join(struct.pack("<QQ", first, last + 1) for first, last in ranges)
    return body


logical = struct.pack("<BQQ", 2, 5, 6)
gtid_head = b"\1" + RAW + struct.pack("<Q", 77)
times = (1_700_000_000_000_001 | 1 << 55).to_bytes(7, "little") + (1_600_000_000_000_002).to_bytes(7, "little")
original = (1_700_000_000_000_001).to_bytes(7, "little")
gtid = MysqlGtid(UUID, 77)
blue = MysqlGtid(f"{UUID}:blue", 77)
micros = 1_700_000_000_000_001

CASES: list[tuple[int, bytes, type[Event], dict[str, object]]] = [
    (4, struct.pack("<Q", 4) + b"binlog.000002", RotateEvent, {"next_file": "binlog.000002", "next_position": 4}),
    (4, struct.pack("<Q", 4) + b"b.000002\0long", RotateEvent, {"next_file": "b.000002", "next_position": 4}),
    (5, struct.pack("<BQ", 2, 2**64 - 1), IntvarEvent, {"kind": 2, "value": 2**64 - 1}),
    (13, struct.pack("<QQ", 1, 2), RandEvent, {"seed1": 1, "seed2": 2}),
    (14, struct.pack("<I", 1) + b"v\1", UserVarEvent, {"name": "v", "value": None}),
    (14, struct.pack("<I1sBBII", 1, b"v", 0, 0, 255, 2) + b"ab", UserVarEvent, {"name": "v", "value": b"ab", "kind": "string", "charset": "utf8mb4"}),
    (26, struct.pack("<HB", 1, 4) + b"lost", IncidentEvent, {"incident": 1, "message": "lost"}),
    (27, b"binlog.000007", HeartbeatEvent, {"file": "binlog.000007"}),
    (29, b"\7INSERT INTO t", RowsQueryEvent, {"statement": "INSERT INTO t"}),
    (160, b"INSERT INTO t", RowsQueryEvent, {"statement": "INSERT INTO t"}),
    (33, gtid_head, GtidEvent, {"gtid": gtid, "last_committed": 0, "sequence_number": 0, "immediate_commit": 0, "original_commit": 0}),
    (33, gtid_head + logical + original, GtidEvent, {"gtid": gtid, "last_committed": 5, "sequence_number": 6, "immediate_commit": micros, "original_commit": micros}),
    (34, gtid_head + logical + times, AnonymousGtidEvent, {"last_committed": 5, "sequence_number": 6, "immediate_commit": micros, "original_commit": 1_600_000_000_000_002}),
    (42, tagged({2: 154, 4: 10, 5: 12, 6: micros}), GtidEvent, {"gtid": blue, "last_committed": 5, "sequence_number": 6, "immediate_commit": micros, "original_commit": micros}),
    (42, tagged({2: 154, 4: 0, 5: 2, 6: micros, 7: 9, 8: 300, 9: 90600, 12: 1}), GtidEvent, {"gtid": blue, "last_committed": 0, "sequence_number": 1, "immediate_commit": micros, "original_commit": 9}),
    (38, struct.pack("<BIII", 0, 1, 2, 1) + b"abc", XaPrepareEvent, {"one_phase": False, "xid": "X'6162',X'63',1"}),
    (161, struct.pack("<I", 4) + b"file", BinlogCheckpointEvent, {"oldest_file": "file"}),
    (162, struct.pack("<QIB", 5, 3, 1) + bytes(6), MariadbGtidEvent, {"gtid": MariadbGtid(3, 9, 5), "gtid_flags": 1}),
    (36, b"anything", UnknownEvent, {"body": b"anything"}),
    (200, b"", UnknownEvent, {"body": b""}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "made", "fields"), CASES)
def test_a_body(kind: int, body: bytes, made: type[Event], fields: dict[str, object]) -> None:
    assert read_body(header(kind), None, body) == made(header(kind), None, **fields)


@pytest.mark.parametrize(("kind", "body"), [(kind, body) for kind, body, made, _ in CASES if made is not UnknownEvent])
def test_a_body_that_is_cut_is_refused_or_short(kind: int, body: bytes) -> None:
    refused = 0
    for size in range(len(body)):
        try:
            assert read_body(header(kind), None, body[:size]).header.type == kind
        except BinlogFormatError as error:
            assert "ends before" in error.what or "no GTID" in error.what
            refused += 1
    assert refused or kind in {27, 29, 160}


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (35, previous([], tags=False), ""),
        (35, previous([(RAW, "", [(1, 5), (7, 7)]), (RAW[::-1], "", [(1, 1)])], tags=False), f"{UUID}:1-5:7,{OTHER}:1"),
        (35, previous([(RAW, "", [(1, 13)]), (RAW, "blue", [(1, 2), (4, 4)])], tags=True), f"{UUID}:1-13:blue:1-2:4"),
        (163, struct.pack("<I", 0), ""),
        (163, struct.pack("<IIIQIIQ", 2 | 1 << 28, 0, 1, 100, 5, 2, 7), "0-1-100,5-2-7"),
    ],
)
def test_the_sets_before_a_file(kind: int, body: bytes, text: str) -> None:
    event = read_body(header(kind), None, body)
    assert isinstance(event, PreviousGtidsEvent | GtidListEvent)
    assert str(event.gtids) == text


def test_events_of_an_unknown_type_that_may_be_passed_over(tmp_path: Path) -> None:
    log = LogBuilder()
    log.event(99, b"something", flags=0x80)
    log.stop()
    (path,) = written(tmp_path, [bytes(log.data)])
    events = read(path)
    assert names(events) == ["FormatDescription", "Unknown", "Stop"]
    assert isinstance(events[1], UnknownEvent)
    assert (events[1].body, events[1].header.name) == (b"something", "event type 99")
