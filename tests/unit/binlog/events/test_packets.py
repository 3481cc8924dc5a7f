"""Events are extracted from the packets of a dump, wherever network blocks end."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymysql.err import OperationalError

from loader.binlog.events.packets import BEGUN, DAMAGED, LEFT, MORE, READ, REPLY, WRITTEN, unpack
from loader.errors import BinlogFormatError
from loader.transport.dump import Events

LONGEST = 0xFFFFFF


def packets(payload: bytes, number: int = 1) -> bytes:
    """A payload as packets: one of 2^24-1 bytes is continued by the next, which may be empty."""
    found = b""
    while True:
        piece, payload = payload[:LONGEST], payload[LONGEST:]
        found += len(piece).to_bytes(3, "little") + bytes([number & 0xFF]) + piece
        number += 1
        if len(piece) < LONGEST:
            return found


def unpacked(stream: bytes, cuts: list[int]) -> tuple[bytes, bytes]:
    """The events of a stream that arrives in pieces, and what is left from the reply on."""
    state = np.zeros(7, np.int64)
    found, kept = b"", b""
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        block = np.frombuffer(kept + stream[start:end] or b"\0", np.uint8).copy()
        size = len(kept) + end - start
        out = np.full(size + 64, 0xA5, np.uint8)
        state[[READ, WRITTEN]] = 0
        status = unpack(block, size, out, state)
        assert state[WRITTEN] <= size
        assert (out[state[WRITTEN] :] == 0xA5).all()
        found += out[: state[WRITTEN]].tobytes()
        kept = block[state[READ] : size].tobytes()
        if status == REPLY:
            return found, kept + stream[end:]
    return found, kept


def _of_a_file(event: bytes) -> bool:
    """Neither a heartbeat nor the start of a file."""
    return event[4:5] not in {b"\x0f", b"\x1b", b"\x29"}


def typed(kind: int, size: int) -> bytes:
    """An event of a type; its header is not looked at otherwise."""
    return bytes([kind + 1] * 4) + bytes([kind]) + bytes([kind + 2] * (size - 5))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.binary(min_size=1, max_size=60).filter(_of_a_file), max_size=12), st.data())
def test_events_come_out_whole_wherever_blocks_are_cut(events: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(packets(b"\0" + event, number) for number, event in enumerate(events)) + packets(b"\xfe\0\0\2\0")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=15)))
    found, rest = unpacked(stream, cuts)
    assert found == b"".join(events)
    assert rest == packets(b"\xfe\0\0\2\0")


@pytest.mark.parametrize("first", [0xFF, 0xFE])
def test_an_error_or_the_end_is_handed_over_when_it_is_whole(first: int) -> None:
    reply = packets(bytes([first]) + b"some words")
    state = np.zeros(7, np.int64)
    for size in range(len(reply)):
        state[[READ, WRITTEN]] = 0
        block = np.frombuffer(reply, np.uint8)[: size or 1].copy()
        assert unpack(block, size, np.empty(64, np.uint8), state) == MORE
        assert state[READ] == 0
    assert unpack(np.frombuffer(reply, np.uint8).copy(), len(reply), np.empty(64, np.uint8), state) == REPLY


@pytest.mark.parametrize("extra", [-2, -1, 0, 1, 5])
def test_an_event_of_16_mib_and_more_is_continued_by_the_next_packet(extra: int) -> None:
    event = bytes(range(251)) * (LONGEST // 251 + 2)
    event = event[: LONGEST + extra]
    stream = packets(b"\0" + event) + packets(b"\0next") + packets(b"\xfe\0\0\2\0")
    for cuts in ([], [LONGEST + 4], [LONGEST + 3, LONGEST + 5, LONGEST + 9], [100, 2 * 1024 * 1024]):
        found, rest = unpacked(stream, cuts)
        assert found == event + b"next"
        assert rest == packets(b"\xfe\0\0\2\0")


def test_a_packet_that_is_not_whole_waits_for_its_rest() -> None:
    stream = packets(b"\0" + b"an event")
    for size, expected in ((9, (0, 0, 0)), (10, (10, 5, 3))):  # its type is at byte 9
        state = np.zeros(7, np.int64)
        block = np.frombuffer(stream[:size], np.uint8).copy()
        assert unpack(block, len(block), np.empty(32, np.uint8), state) == MORE
        assert (int(state[READ]), int(state[WRITTEN]), int(state[LEFT])) == expected


def dump(stream: bytes) -> Events:
    """A running dump whose bytes have all arrived."""
    silent = SimpleNamespace(settimeout=lambda _: None)
    return Events(
        cast("Any", SimpleNamespace(_rfile=io.BufferedReader(io.BytesIO(stream)), _sock=silent, _read_timeout=1))
    )


def test_the_end_of_a_dump_may_come_in_one_block_with_its_last_events() -> None:
    events = dump(packets(b"\0" + b"event") + packets(b"\xfe\0\0\2\0"))
    assert events.read() == b"event"
    assert events.read() == b""


def test_an_error_of_a_dump_may_come_in_one_block_with_its_last_events() -> None:
    events = dump(packets(b"\0" + b"event") + packets(b"\xff\xd4\x04#HY000bogus data in log event"))
    assert events.read() == b"event"
    with pytest.raises(OperationalError, match="bogus data"):
        events.read()


def test_a_dump_that_breaks_off_is_a_lost_connection() -> None:
    events = dump(packets(b"\0" + b"event"))
    assert events.read() == b"event"
    with pytest.raises(OperationalError, match="Lost connection"):
        events.read()


def test_heartbeats_are_left_out_wherever_blocks_are_cut() -> None:
    kept = [typed(30, 40), typed(31, 25), typed(16, 31)]
    events = [typed(27, 30), kept[0], typed(41, 50), typed(27, 20), kept[1], kept[2], typed(41, 19)]
    stream = b"".join(packets(b"\0" + event) for event in events) + packets(b"\xfe\0\0\2\0")
    for cut in range(len(stream)):
        found, rest = unpacked(stream, [cut, min(cut + 3, len(stream))])
        assert found == b"".join(kept)
        assert rest == packets(b"\xfe\0\0\2\0")


def test_where_the_last_event_begins_is_told() -> None:
    stream = packets(b"\0" + typed(30, 40)) + packets(b"\0" + typed(31, 50)) + packets(b"\0" + typed(27, 50))
    block, out, state = np.frombuffer(stream, np.uint8).copy(), np.empty(500, np.uint8), np.zeros(7, np.int64)
    for size, begun in ((44, 0), (45 + 9, 0), (45 + 10, 40), (len(stream), 40)):
        state[:] = 0
        state[BEGUN] = -1
        assert unpack(block, size, out, state) == MORE
        assert state[BEGUN] == begun
    state[[READ, WRITTEN, BEGUN]] = 0, 0, -1
    assert unpack(block, 0, out, state) == MORE
    assert state[BEGUN] == -1


def test_a_second_format_event_is_the_next_file() -> None:
    this, following = typed(15, 90) + typed(30, 30), typed(15, 80)
    stream = b"".join(packets(b"\0" + event) for event in (this[:90], this[90:], following, this[90:]))
    events = dump(stream)
    assert events.read() == this
    assert events.read() == events.read() == b""


EMPTY = b"\0\0\0\1"
"""A packet without a payload, which a server sends only behind one of 2^24-1 bytes."""


def test_an_empty_packet_is_damage_and_writes_nothing_in_front_of_the_output() -> None:
    stream = (EMPTY + b"\0") * 100 + b"written in front of the output"
    around = np.full(2000, 0xA5, np.uint8)
    state = np.zeros(7, np.int64)
    assert unpack(np.frombuffer(stream, np.uint8).copy(), len(stream), around[1000:], state) == DAMAGED
    assert (around == 0xA5).all()
    assert state[WRITTEN] == 0


@pytest.mark.parametrize("before", [b"", packets(b"\0" + b"event"), packets(b"\0" + b"e" * (LONGEST - 1))])
@pytest.mark.parametrize("behind", [b"", b"\0", b"\xff"])
def test_an_empty_packet_that_continues_nothing_ends_the_dump(before: bytes, behind: bytes) -> None:
    events = dump(before + EMPTY + behind)
    with pytest.raises(BinlogFormatError, match="an empty packet"):
        while events.read():
            pass


def test_no_more_is_written_than_the_output_has_room_for() -> None:
    stream = packets(b"\0" + b"an event") + packets(b"\0" + b"another event")
    around = np.full(100, 0xA5, np.uint8)
    for room in range(20):
        state = np.zeros(7, np.int64)
        assert unpack(np.frombuffer(stream, np.uint8).copy(), len(stream), around[:room], state) == DAMAGED
        assert (around[room:] == 0xA5).all()
        assert state[WRITTEN] <= room
