"""The kernel that reads the GTIDs of transactions, from the offsets where they begin.

Formats: MySQL's `Gtid_event` (flags 1, UUID 16, number 8) and its tagged form (see `tagged_commit_time` in
transaction_control). MariaDB's "GTID_EVENT" (sequence 8, domain 4, flags 1); its server id is in the event header.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.constants import HEADER
from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.transaction_control import varint
from loader.binlog.values.digits import little

Ints = NDArray[np.int64]

UUID, TAG, TAG_END = 0, 17, 49
"""Offsets in a source: UUID 16 (MariaDB: domain 4, server id 4, zeros), length of the tag 1, tag."""
SOURCE = 64
"""Bytes of a source."""

DONE, FULL, CUT = range(3)
"""Statuses of the kernel. FULL: the array of sources is full. CUT: an event is truncated or damaged."""

KNOWN, NEXT, RUNS = range(3)
"""The kernel's state: number of known sources; index of the next transaction; number of finished runs."""

R_SOURCE, R_FIRST, R_LAST = range(3)
"""Fields of a run of consecutive GTIDs: its source, first number and last number."""
_GTID, _TAGGED, _MARIADB = np.uint8(33), np.uint8(42), np.uint8(162)
_ASCII = np.uint8(127)
_OTHERS = 11  # the highest known field id of a tagged GTID


@part
def _tagged(buf: Bytes, at: int, end: int, source: Bytes) -> np.int64:
    """Return the number of a GTID_TAGGED event (-1 if damaged), and write its UUID and tag to `source`."""
    pos = at + HEADER
    value = np.uint64(0)
    for _ in range(3):
        pos, value = varint(buf, pos, end)
        if pos == 0:
            return np.int64(-1)
    number = np.int64(-1)
    while pos < end:
        pos, field = varint(buf, pos, end)
        if pos == 0:
            return np.int64(-1)
        if field > np.uint64(_OTHERS):
            break
        for i in range(16 if field == np.uint64(1) else 1):
            pos, value = varint(buf, pos, end)
            if pos == 0:
                return np.int64(-1)
            if field == np.uint64(1):
                source[UUID + i] = np.uint8(value & np.uint64(0xFF))
        if field == np.uint64(2):
            number = np.int64(value >> np.uint64(1))  # signed numbers have their sign in the lowest bit
        elif field == np.uint64(3):
            size = np.int64(value)
            if size < 0 or size > TAG_END - TAG or size > end - pos:
                return np.int64(-1)
            source[TAG - 1] = np.uint8(size)
            for i in range(size):
                if buf[pos + i] > _ASCII:
                    return np.int64(-1)
                source[TAG + i] = buf[pos + i]
            break  # fields are in order of their ids; the later ones are not needed
    return number


@part
def _find(sources: Bytes, low: np.uint64, high: np.uint64, known: int) -> int:
    """Return the index of the source without tag that has these 16 bytes; `known` if it is new."""
    for one in range(known):
        if little(sources, one * SOURCE, 8) == low and little(sources, one * SOURCE + 8, 8) == high:
            if sources[one * SOURCE + TAG - 1] == 0:
                return one
    return known


@part
def _find_tagged(sources: Bytes, known: int) -> int:
    """Return the index of the source equal to the one at index `known`; `known` if it is new."""
    for one in range(known):
        same = True
        for at in range(0, SOURCE, 8):
            if little(sources, one * SOURCE + at, 8) != little(sources, known * SOURCE + at, 8):
                same = False
        if same:
            return one
    return known


@part
def _put(sources: Bytes, place: int, low: np.uint64, high: np.uint64) -> None:
    for i in range(8):
        sources[place * SOURCE + i] = np.uint8(low >> np.uint64(8 * i) & np.uint64(0xFF))
        sources[place * SOURCE + 8 + i] = np.uint8(high >> np.uint64(8 * i) & np.uint64(0xFF))
    for i in range(16, SOURCE):
        sources[place * SOURCE + i] = np.uint8(0)


@part
def _go_on(number: np.int64, open_run: Ints, runs: Ints, state: Ints) -> None:
    """Append a number to the open run of its source, or finish that run and open another one."""
    if number == open_run[R_LAST] + 1:
        open_run[R_LAST] = number
        return
    ended = runs[state[RUNS]]
    for i in range(3):
        ended[i] = open_run[i]
    state[RUNS] += 1
    open_run[R_FIRST] = number
    open_run[R_LAST] = number


@part
def _source(buf: Bytes, at: int, end: int, sources: Bytes, known: int) -> tuple[int, np.int64]:
    """Return the index of a GTID event's source (a new source gets index `known`), and its number (-1 if damaged)."""
    body = at + HEADER
    kind = buf[at + 4]
    if kind == _TAGGED:
        _put(sources, known, np.uint64(0), np.uint64(0))
        number = _tagged(buf, at, end, sources[known * SOURCE : (known + 1) * SOURCE])
        return _find_tagged(sources, known), number
    if kind == _GTID:
        low, high = little(buf, body + 1, 8), little(buf, body + 9, 8)
        number = np.int64(little(buf, body + 17, 8))
    else:
        low = little(buf, body + 8, 4) | little(buf, at + 5, 4) << np.uint64(32)
        high = np.uint64(0)
        number = np.int64(little(buf, body, 8))
    found = _find(sources, low, high, known)
    if found == known:
        _put(sources, known, low, high)
    return found, number


@kernel("int64(uint8[::1], int64, int64, int64[::1], uint8[::1], int64[:,::1], int64[:,::1], int64[::1])")
def gtids(
    buf: Bytes, size: int, base: int, starts: Ints, sources: Bytes, current: Ints, runs: Ints, state: Ints
) -> int:
    """Read the GTIDs of transactions; return a status.

    Args:
        buf: the block of the log.
        size: bytes used in `buf`.
        base: offset in the file of buf[0].
        starts: file offsets where the transactions begin.
        sources: SOURCE bytes per known source.
        current: the open run of each source, fields R_*.
        runs: output: finished runs, with room for one per transaction.
        state: the kernel's state.
    """
    while state[NEXT] < len(starts):
        at = starts[state[NEXT]] - base
        if at < 0 or at + HEADER > size:
            return CUT
        end = at + np.int64(little(buf, at + 9, 4))
        kind = buf[at + 4]
        if kind == _GTID or kind == _TAGGED or kind == _MARIADB:
            if end > size or end < at + HEADER + (12 if kind == _MARIADB else 25):
                return CUT
            known = state[KNOWN]
            if known == len(current):
                return FULL
            found, number = _source(buf, at, end, sources, known)
            if number < 0:
                return CUT
            if found == known:
                current[found, R_SOURCE] = found
                current[found, R_FIRST] = number
                current[found, R_LAST] = number
                state[KNOWN] += 1
            else:
                _go_on(number, current[found], runs, state)
        state[NEXT] += 1
    return DONE
