"""The kernel that finds the last record of each key among the records of all files."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part
from loader.native_collapse.siphash import Words
from loader.native_collapse.staged_lines import HIGH, LOW, OFFSET, OP, SEQNO, Ints

Slots = NDArray[np.uint32]

_SHIFT = np.uint64(32)
_EMPTY = np.uint32(0)
_ONE = np.uint64(1)


@part
def _later(records: Ints, one: int, other: int) -> bool:
    """Return whether one record is later. Two records at one offset would be a fault of the log reader.

    Even then the result is deterministic, by the op.
    """
    if records[one, SEQNO] != records[other, SEQNO]:
        return records[one, SEQNO] > records[other, SEQNO]
    if records[one, OFFSET] != records[other, OFFSET]:
        return records[one, OFFSET] > records[other, OFFSET]
    return records[one, OP] > records[other, OP]


@kernel("int64(int64[:, ::1], uint64[:, ::1], int64, int64, uint64, uint64, uint32[::1], uint8[::1])")
def choose(
    records: Ints,
    hashes: Words,
    after: int,
    through: int,
    lane: np.uint64,
    lanes: np.uint64,
    slots: Slots,
    chosen: Bytes,
) -> int:
    """Flag the last record of each key with `after` < seqno <= `through`.

    Return the number of keys, or -1 if `slots` has no room for them.

    Args:
        records: filled by `loader.native_collapse.staged_lines.scan`.
        hashes: filled by the same.
        after: a seqno, see above.
        through: a seqno, see above.
        lane: the number of the share of keys to look at. Threads work on different lanes.
        lanes: the number of lanes.
        slots: the hash table, filled with zeros. Its size is a power of two.
        chosen: output, set to 1 for each record of the lane that is the last of its key.
    """
    mask = np.uint64(len(slots) - 1)
    found = 0
    for record in range(len(records)):
        if records[record, SEQNO] <= after or records[record, SEQNO] > through:
            continue
        low = hashes[record, LOW]
        if (low >> _SHIFT) % lanes != lane:
            continue
        slot = low & mask
        while slots[slot] != _EMPTY:
            before = np.int64(slots[slot]) - 1
            if hashes[before, LOW] == low and hashes[before, HIGH] == hashes[record, HIGH]:
                break
            slot = (slot + _ONE) & mask
        if slots[slot] == _EMPTY:
            found += 1
            if found == len(slots):
                return -1
        else:
            before = np.int64(slots[slot]) - 1
            if not _later(records, record, before):
                continue
            chosen[before] = 0
        slots[slot] = np.uint32(record + 1)
        chosen[record] = 1
    return found
