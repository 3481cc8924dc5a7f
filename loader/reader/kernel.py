"""Kernels that only read event headers: they count events and find the starts of transactions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.constants import HEADER
from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.native.crc import crc32
from loader.binlog.values.digits import little


@part
def _event_at(block: Bytes, at: int, size: int, base: int) -> np.int64:
    """The length of what looks like an event; 0 for what does not. Offsets in headers wrap at 4 GiB."""
    if at + HEADER > size:
        return np.int64(0)
    length = np.int64(little(block, at + 9, 4))
    if length < HEADER or np.int64(little(block, at + 13, 4)) != (base + at + length) & 0xFFFFFFFF:
        return np.int64(0)
    return length


@kernel("int64(uint8[::1], int64, int64[:,::1])")
def tally(block: Bytes, size: int, counts: NDArray[np.int64]) -> int:
    """Add the number and the bytes of the whole events in block[:size] to counts[type]. Return the bytes counted."""
    at = 0
    while at + HEADER <= size:
        length = np.int64(little(block, at + 9, 4))
        if length < HEADER or at + length > size:
            break
        counts[block[at + 4], 0] += 1
        counts[block[at + 4], 1] += length
        at += length
    return at


@kernel("int64(uint8[::1], int64, int64, int64)")
def first_event(block: Bytes, size: int, base: int, checksum: int) -> int:
    """Return the index of the first whole event in block[:size], or -1. `base` is the file offset of block[0].

    An event header has the file offset of the event's end. Bytes of a value do not have it by chance, or as a copy of
    another log. The event's checksum of `checksum` bytes must be right. Without checksums, the next header must fit.
    """
    for at in range(size - HEADER + 1):
        length = _event_at(block, at, size, base)
        if length == 0 or at + length > size:
            continue
        end = at + length - checksum
        if checksum:
            if np.uint64(crc32(block, at, end)) == little(block, end, 4):
                return at
        elif at + length == size or _event_at(block, at + length, size, base):
            return at
    return -1


@kernel("int64(uint8[::1], int64, int64, int64, int64[::1])")
def begins(block: Bytes, size: int, base: int, boundary: int, found: NDArray[np.int64]) -> int:
    """Walk the events of block[:size] up to a GTID event at or after `boundary`. Return the number of bytes walked.

    `base` is the file offset of block[0]. found[0] is set to the file offset of the last GTID event before `boundary`,
    found[1] to that of the first GTID event at or after it. Checksums are not verified.
    """
    at = 0
    while at + HEADER <= size:
        kind = block[at + 4]
        if kind == 33 or kind == 34 or kind == 42 or kind == 162:
            if base + at >= boundary:
                found[1] = base + at
                return at
            found[0] = base + at
        length = np.int64(little(block, at + 9, 4))
        if length < HEADER:
            break
        at += length
    return at
