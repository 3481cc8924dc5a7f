"""The last record of each key, beside a plain look at all of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loader.native_collapse.key_index import choose

AFTER, THROUGH = 3, 8
RECORDS = st.tuples(st.sampled_from("IUD"), st.integers(0, 10), st.integers(0, 5), st.integers(0, 9))


def chosen(rows: list[tuple[str, int, int, int]], lanes: int, slots: int = 64) -> tuple[list[int], list[int]]:
    records = np.array([[ord(op), seqno, offset, 0] for op, seqno, offset, _ in rows], np.int64).reshape(-1, 4)
    # Lanes are told by the upper half of the first word, slots by its end: many keys here begin in one slot.
    hashes = np.array([[(key % 3) << 32 | key % 2, key] for *_, key in rows], np.uint64).reshape(-1, 2)
    flags = np.zeros(len(rows), np.uint8)
    counts = [
        choose(records, hashes, AFTER, THROUGH, lane, lanes, np.zeros(slots, np.uint32), flags) for lane in range(lanes)
    ]
    return flags.tolist(), counts


@given(st.lists(RECORDS, max_size=60), st.integers(1, 3))
def test_each_key_has_its_last_record_of_the_window(rows: list[tuple[str, int, int, int]], lanes: int) -> None:
    flags, counts = chosen(rows, lanes)
    by_key = defaultdict(list)
    for place, (op, seqno, offset, key) in enumerate(rows):
        if AFTER < seqno <= THROUGH:
            by_key[key].append((seqno, offset, op, -place))
    # Of records that are alike in all of these the first stays.
    assert {place for place, flag in enumerate(flags) if flag} == {-max(found)[-1] for found in by_key.values()}
    assert sum(counts) == sum(flags) == len(by_key)


def test_a_table_that_is_too_small_is_told() -> None:
    rows = [("I", 5, 0, key) for key in range(8)]
    assert chosen(rows, 1, slots=16)[1] == [8]
    assert chosen(rows, 1, slots=8)[1] == [-1]
