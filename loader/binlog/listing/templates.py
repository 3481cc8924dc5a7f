"""Templates of listed events: literal text, and slots for what differs from event to event.

A template belongs to a key: event type, flags, the state of the transaction, and the bytes of the event that decide the
rest of its text. The caller makes the templates from its own listing of an event, so that kernels define no text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.listing.fields import put_bytes
from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import load64
from loader.binlog.values.digits import put_fraction, put_instant, put_unsigned

Ints = NDArray[np.int64]

(
    LITERAL, POSITION, SERVER, SIZE, NEXT, SEQNO, START, STOP, BYTES, LAST_COMMITTED, SEQUENCE, IMMEDIATE, ORIGINAL,
    XID, THREAD, SECONDS, TIME, COMMITTED, TIME_ISO, COMMITTED_ISO, GTID, STATEMENT, ROWS,
) = range(23)  # fmt: skip
"""Slots of a template.

LITERAL: bytes of `literals`.
POSITION, SERVER, SIZE, NEXT: offset, server id, bytes, and offset of the next event, of the event's header.
SEQNO, START, STOP, BYTES: of the transaction.
LAST_COMMITTED to ORIGINAL: of a GTID event. XID: of an XID event. THREAD, SECONDS: of a QUERY event.
TIME, COMMITTED: time of the event and of the commit, as `2026-11-21 09:30:00`; the commit with microseconds.
TIME_ISO, COMMITTED_ISO: the same with a T, the commit without microseconds if they are 0.
GTID: of the transaction. STATEMENT: that caused the next row events. ROWS: rows of a row event.
"""

VALUES = ROWS + 1

_WIDEST_SLOT = 32
_T = np.uint8(ord("T"))
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_DATE = 10  # bytes of a date


@part
def hash_of(key: Bytes, size: int) -> np.int64:
    """Return a hash of key[:size], from 0 on. The bytes up to the next multiple of 8 must be 0."""
    value = np.uint64(size)
    for i in range(0, size, 8):
        value = (value ^ load64(key, i)) * _PRIME
        value ^= value >> np.uint64(29)
    return np.int64(value >> np.uint64(1))


@part
def find_template(key: Bytes, size: int, value: np.int64, slots: Ints, spans: Ints, keys: Bytes) -> np.int64:
    """Return the number of the template for a key, or -1."""
    mask = len(slots) - 1  # the length is a power of 2
    slot = value & mask
    while slots[slot] >= 0:
        found = slots[slot]
        start = spans[found]
        if spans[found + 1] - start == size:
            i = 0
            while i < size and keys[start + i] == key[i]:
                i += 1
            if i == size:
                return np.int64(found)
        slot = (slot + 1) & mask
    return np.int64(-1)


@part
def put_time(out: Bytes, at: int, micros: np.int64, iso: bool, fraction: bool) -> int:
    """Write a time in microseconds since 1970."""
    start = at
    at = put_instant(out, at, micros // 1000000)
    if iso:
        out[start + _DATE] = _T
    if fraction and not (iso and micros % 1000000 == 0):
        at = put_fraction(out, at, micros % 1000000, 6)
    return at


@part
def room_of_template(ops: Ints, first: int, last: int, gtid: int) -> np.int64:
    """Return the most bytes that a template needs, without rows."""
    return np.int64(ops[last - 1, 2] - ops[first, 1] + (last - first) * (_WIDEST_SLOT + gtid))


@part
def put_slot(out: Bytes, at: int, slot: int, values: Ints, gtid: Bytes, gtid_end: int) -> int:
    """Write the value of a slot that is a number, a time or a GTID."""
    if slot == GTID:
        return put_bytes(out, at, gtid, 0, gtid_end)
    if slot >= TIME:
        committed = slot == COMMITTED or slot == COMMITTED_ISO
        return put_time(out, at, values[slot], slot >= TIME_ISO, committed)
    return put_unsigned(out, at, np.uint64(values[slot]))
