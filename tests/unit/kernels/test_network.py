"""Kernels that read bytes from a server write nothing outside of their arrays, whatever the bytes are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loader.binlog.events import packets as p
from loader.initial_load.result_set import kernel as k
from tests.unit.binlog.events.test_packets import packets, typed
from tests.unit.initial_load.packets import COLUMNS, END, ROWS, packed, packet, row
from tests.unit.initial_load.test_kernel import foreign, foreign_row
from tests.unit.kernels.fuzz import much, mutated

GUARD = 4096
MARK = 0xA5
EVENTS = b"".join(
    packets(b"\0" + typed(kind, size)) for kind, size in ((15, 90), (30, 40), (27, 30), (31, 6), (16, 31))
)
LENGTHS = st.sampled_from([0, 1, 2, 5, 6, 30, 255, 0xFFFFFE, 0xFFFFFF])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Packets with lengths that need not be right."""
    found = b""
    for _ in range(draw(st.integers(0, 30))):
        body = draw(st.binary(max_size=12))
        found += draw(LENGTHS | st.just(len(body))).to_bytes(3, "little") + b"\1" + body
    return found


def guarded(size: int) -> tuple[np.ndarray, np.ndarray]:
    """An array of that size, and the one that it lies in the middle of."""
    whole = np.full(size + 2 * GUARD, MARK, np.uint8)
    return whole[GUARD : GUARD + size], whole


@much
@given(streams() | mutated(EVENTS * 3), st.integers(0, 1), st.integers(-1, 1))
def test_packets_of_a_dump(stream: bytes, several: int, room: int) -> None:
    block = np.frombuffer(stream + b"\0", np.uint8).copy()
    out, whole = guarded(max(0, len(stream) + room))
    state = np.zeros(7, np.int64)
    state[p.FORMATTED] = -several
    status = p.MORE
    for size in (len(stream) // 2, len(stream)):
        status = p.unpack(block, size, out, state)
        assert 0 <= state[p.READ] <= size
        assert 0 <= state[p.WRITTEN] <= len(out)
        assert state[p.LEFT] >= 0
        if status == p.DAMAGED:
            break
    assert status in {p.MORE, p.REPLY, p.NEXT, p.DAMAGED}
    assert (whole[:GUARD] == MARK).all()
    assert (whole[GUARD + len(out) :] == MARK).all()


TEXTS, TABLES = foreign()
OTHERS = [
    (k.TEXT, 0, 0, 0, 2),
    (k.HEX, 0, 0, 0, 2),
    (k.BIT, 0, 0, 0, 2),
    (k.DECIMAL, 0, 0, 0, 2),
    (k.VECTOR, 0, 0, 0, 7),
]
FIXED = [(k.INT, size, 0, 0, 2) for size in (1, 2, 4, 8)] + [(k.UINT, size, 0, 0, 2) for size in (1, 2, 4, 8)]
FIXED += [(k.FLOAT, 4, 0, 0, 2), (k.DOUBLE, 8, 0, 0, 2), (k.YEAR, 2, 0, 0, 2)]
TIMES = [(kind, size, 0, 0, 2) for kind in (k.DATETIME, k.TIME) for size in range(7)] + [(k.DATE, 0, 0, 0, 2)]
HEXED = [(one[0] + flag, *one[1:]) for one in TEXTS[:7].tolist() for flag in (k.HEXED, k.HEXED_KEY)]
COLUMN = st.sampled_from([*OTHERS, *FIXED, *TIMES, *map(tuple, TEXTS[:7].tolist()), *HEXED])
VALUES = (
    st.binary(max_size=300).map(packed)
    | st.binary(max_size=8)
    | st.sampled_from([b"\xfb", b"\xfc", b"\xfe" + b"\xff" * 8])
)


@st.composite
def results(draw: st.DrawFn) -> tuple[np.ndarray, bytes]:
    columns = draw(st.lists(COLUMN, min_size=1, max_size=12))
    values = draw(st.lists(VALUES | st.none(), min_size=len(columns), max_size=len(columns)))
    return np.array(columns, np.int64).reshape(len(columns), 5), packet(row(*values)) + END


@st.composite
def damaged(draw: st.DrawFn) -> tuple[np.ndarray, bytes]:
    wide = np.zeros((len(COLUMNS), 5), np.int64)
    wide[:, :2], wide[:, 4] = COLUMNS, 2
    whole = b"".join(packet(payload) for payload, _ in ROWS[:3])
    if draw(st.booleans()):
        return wide, draw(mutated(whole)) + END
    with_vector = TEXTS.copy()
    with_vector[7, 4] = 7
    return with_vector, draw(mutated(packet(foreign_row()))) + END


@much
@given(results() | damaged(), st.integers(0, 3000) | st.just(1 << 16), st.binary(max_size=40))
def test_rows_of_an_initial_load(result: tuple[np.ndarray, bytes], room: int, head: bytes) -> None:
    columns, data = result
    block = np.frombuffer(data, np.uint8).copy()
    out, whole = guarded(room)
    state = np.zeros(4, np.int64)
    prefix = np.frombuffer(head or b"\0", np.uint8)[: len(head)].copy()
    status = k.stage_result(block, len(data), prefix, columns, TABLES, out, state)
    assert status in {k.MORE, k.NO_ROOM, k.REPLY, k.BAD_VALUE, k.DAMAGED}
    assert 0 <= state[k.OUT] <= room
    assert 0 <= state[k.AT] <= len(data)
    assert (whole[:GUARD] == MARK).all()
    assert (whole[GUARD + room :] == MARK).all()
