"""Kernels that read events of a log: GTIDs, statistics, positions, encrypted blocks. For rows see tests/unit/binlog."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loader.binlog.constants import HEADER
from loader.binlog.crypto import cipher_blocks as c
from loader.binlog.events import gtids as g
from loader.reader import kernel as r
from tests.unit.binlog.reading import Staged, outcome
from tests.unit.binlog.test_damage import WHOLE
from tests.unit.kernels.fuzz import much, mutated
from tests.unit.reader.logs import busy

LOGS = st.sampled_from([bytes(WHOLE.data), bytes(busy(2).data)])
SIZES = st.sampled_from([0, 12, 18, 19, 20, 31, 32, 44, 60, 2**31 - 1, 2**31, 2**32 - 1]) | st.integers(19, 200)


@st.composite
def events(draw: st.DrawFn, kinds: tuple[int, ...] = (33, 42, 162, 2, 30)) -> bytes:
    """Events with bodies and sizes that need not fit."""
    found = b""
    for _ in range(draw(st.integers(0, 8))):
        body = draw(st.binary(max_size=80))
        size = draw(SIZES | st.just(HEADER + len(body)))
        end = draw(st.just(len(found) + HEADER + len(body)) | st.integers(0, 2**32 - 1))
        found += struct.pack("<IBIIIH", 0, draw(st.sampled_from(kinds)), 1, size, end, 0) + body
    return found


def block_of(data: bytes) -> np.ndarray:
    return np.frombuffer(data or b"\0", np.uint8)[: len(data)].copy()


@much
@given(LOGS.flatmap(lambda log: mutated(log, first=4)))
def test_a_whole_log(log: bytes) -> None:
    found = outcome(log)
    assert isinstance(found, Staged) or found.exit_code == 4


@much
@given(events() | LOGS.flatmap(mutated), st.lists(st.integers(-5, 700), max_size=8), st.integers(1, 4))
def test_gtids(data: bytes, places: list[int], room: int) -> None:
    block = block_of(data)
    starts = np.array(sorted(places), np.int64)
    sources, current = np.zeros(room * g.SOURCE, np.uint8), np.zeros((room, 3), np.int64)
    runs, state = np.zeros((len(starts), 3), np.int64), np.zeros(3, np.int64)
    status = g.gtids(block, len(block), 0, starts, sources, current, runs, state)
    assert status in {g.DONE, g.FULL, g.CUT}
    assert 0 <= state[g.KNOWN] <= room
    assert 0 <= state[g.RUNS] <= len(starts)
    for one in range(int(state[g.KNOWN])):
        source = sources[one * g.SOURCE : (one + 1) * g.SOURCE].tobytes()
        assert source[g.TAG - 1] <= g.TAG_END - g.TAG
        source[g.TAG : g.TAG + source[g.TAG - 1]].decode("ascii")


def test_a_gtid_whose_tag_has_a_length_below_zero_is_damaged() -> None:
    for bits in (b"\xff" * 9, b"\xff" + b"\x80" * 8):
        body = b"\2\2\2" + b"\0\0" + b"\2" + b"\2" * 16 + b"\4\4" + b"\6" + bits + bytes(60)
        block = block_of(struct.pack("<IBIIIH", 0, 42, 1, HEADER + len(body), 0, 0) + body)
        state, starts = np.zeros(3, np.int64), np.zeros(1, np.int64)
        arrays = np.zeros(2 * g.SOURCE, np.uint8), np.zeros((2, 3), np.int64), np.zeros((1, 3), np.int64)
        assert g.gtids(block, len(block), 0, starts, *arrays, state) == g.CUT


@much
@given(events() | LOGS.flatmap(mutated), st.integers(0, 2**33), st.sampled_from([0, 4]))
def test_statistics_and_places(data: bytes, base: int, checksum: int) -> None:
    block, counts = block_of(data), np.zeros((256, 2), np.int64)
    assert 0 <= r.tally(block, len(block), counts) <= len(block)
    assert -1 <= r.first_event(block, len(block), base, checksum) <= max(-1, len(block) - HEADER)
    assert r.begins(block, len(block), base, base + 50, np.zeros(2, np.int64)) >= 0


@much
@given(events() | st.binary(max_size=400), SIZES, st.integers(0, 9), st.integers(0, 2**31), st.booleans())
def test_encrypted_blocks(data: bytes, length: int, first: int, base: int, counted: bool) -> None:
    block = block_of(data)
    if length < HEADER:
        length = 0
    first = first if 2 <= first <= (length - 4) // c.BLOCK else 0
    event = base - (4 + c.BLOCK * (first - 1) if first else 0)
    pieces = len(block) // c.BLOCK + len(block) // HEADER + 2
    ciphers, counters, masks = (np.zeros((pieces + 1) * c.BLOCK, np.uint8) for _ in range(3))
    span = np.array([base, event, length, first, 0, 0, 0], np.int64)
    parts = np.zeros((pieces, 4), np.int64)
    nonce = np.zeros(12, np.uint8)
    count = c.gather(block, len(block), span, nonce, int(counted), ciphers, counters, masks, parts)
    assert 0 <= count <= pieces
    assert c.scatter(parts, count, ciphers, counters, masks, block) == count
    assert c.hop(block, len(block), base, base, base + 300) >= base
