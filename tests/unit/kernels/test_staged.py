"""Kernels that read staged files, which others could have written to the store."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loader.native_collapse.key_index import choose
from loader.native_collapse.staged_lines import keep, longest, scan
from loader.native_collapse.staged_text import unescape, unhex
from tests.unit.kernels.fuzz import much, mutated

LINES = b'I,12,3,2024-01-01 00:00:00,,1,"a""b"\nU,12,9,2024-01-01 00:00:00,,2,"x,\\n"\nD,13,0,2024-01-01 00:00:00,01,3,\\N\n'
TEXTS = st.lists(st.sampled_from(list(b',"\n\\I129')) | st.integers(0, 255), max_size=60).map(bytes)


def block_of(data: bytes) -> np.ndarray:
    return np.frombuffer(data or b"\0", np.uint8)[: len(data)].copy()


@much
@given(mutated(LINES * 2) | TEXTS | TEXTS.map(lambda text: text + b"\n"), st.integers(0, 8), st.integers(0, 3))
def test_lines(data: bytes, rows: int, columns: int) -> None:
    keys = np.zeros(columns, np.uint8)
    keys[:1] = 1
    records, hashes = np.zeros((rows, 4), np.int64), np.zeros((rows, 2), np.uint64)
    found = scan(block_of(data), keys, np.zeros(2, np.uint64), records, hashes)
    assert -1 <= found <= rows
    assert 0 <= longest(block_of(data)) <= len(data)
    chosen = np.zeros(rows, np.uint8)
    count = choose(records, hashes, -1, 2**62, np.uint64(0), np.uint64(1), np.zeros(16, np.uint32), chosen)
    assert count == chosen.sum()


@much
@given(mutated(LINES) | TEXTS, st.lists(st.integers(0, 1), max_size=6))
def test_lines_that_are_kept_may_be_of_a_file_that_was_changed_since(data: bytes, wanted: list[int]) -> None:
    """The file was read once before, and its lines were counted then."""
    size = keep(block_of(data), np.array(wanted, np.uint8))
    assert -1 <= size <= len(data)
    assert (size == -1) == (data.count(b"\n") < len(wanted))


@much
@given(
    st.lists(st.binary(max_size=9) | st.sampled_from([b"\\", b"\\n", b"\\x", b"\\x00ff", b"ab", b"\\\\"]), max_size=6)
)
def test_texts(texts: list[bytes]) -> None:
    data = block_of(b"".join(texts))
    bounds = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    ends = np.empty_like(bounds)
    assert 0 <= unescape(data, bounds, np.empty(len(data), np.uint8), ends) <= len(data)
    assert -1 <= unhex(data, bounds, np.empty(len(data) // 2 + 1, np.uint8), ends) <= len(data) // 2
