"""Cutting a segment of a log file into ranges of whole parts, by reading only the bytes around part boundaries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loader.extract.log_ranges import LogRange
from loader.reader.files.log_walk import LogBytes
from loader.reader.kernel import begins, first_event

LOOK = 256 * 1024
"""Bytes to read before the end of a part at first; more are read if no transaction begins there."""


def cut_segment(log: LogBytes, rest: LogRange, part_bytes: int, pieces: int) -> Iterator[LogRange]:
    """Yield the segment as ranges that start and end at GTID events.

    A range is one part, unless a transaction is longer than a part. Then at most `pieces` ranges share the parts of the
    transaction: each reads all its bytes, and stages only the rows in its own parts. A log without GTID events (MySQL
    before 5.7, MariaDB before 10.0) counts as one long transaction. The walk of each range validates the bytes.
    """
    while rest.first_part + 1 < rest.end_part:
        before, first = _transactions_around(log, rest, (rest.first_part + 1) * part_bytes)
        if first < 0:
            break
        part = first // part_bytes
        yield from _shared(rest.model_copy(update={"read_to": first, "end_part": part}), pieces)
        read_from = first if first == part * part_bytes else before
        rest = rest.model_copy(update={"read_from": read_from, "first_part": part})
    yield from _shared(rest, pieces)


def _transactions_around(log: LogBytes, rest: LogRange, boundary: int) -> tuple[int, int]:
    """Return where the last transaction before `boundary` begins, and the first one at or after it (-1: none)."""
    look = LOOK
    while True:
        start = max(rest.read_from, boundary - look)
        found = np.array([-1, -1], np.int64)
        if start == rest.read_from:
            found[0] = start
        else:
            start = _event_from(log, start, boundary)
        if start >= 0:
            _hop(log, start, rest.read_to, boundary, found)
        if found[0] >= 0:
            return int(found[0]), int(found[1])
        look *= 8


def _event_from(log: LogBytes, start: int, stop: int) -> int:
    """Return where the first whole event between two bytes starts; -1 if there is none."""
    block = np.empty(stop - start, np.uint8)
    at = first_event(block, log.fill(block, start), start, log.form.checksum)
    return start + at if at >= 0 else -1


def _hop(log: LogBytes, at: int, stop: int, boundary: int, found: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    """Walk events up to the first transaction at or after the boundary; see the kernel `begins`."""
    block = np.empty(LOOK, np.uint8)
    while at < stop and found[1] < 0:
        got = log.fill(block[: min(len(block), stop - at)], at)
        used = begins(block, got, at, boundary, found)
        if not used:
            return  # found, or no whole event follows: the walk of the range reports damage
        at += used


def _shared(span: LogRange, pieces: int) -> Iterator[LogRange]:
    """Yield the parts of a range as at most `pieces` ranges over the same bytes."""
    parts = span.end_part - span.first_part
    each = -(-parts // min(pieces, parts))
    for first in range(span.first_part, span.end_part, each):
        yield span.model_copy(update={"first_part": first, "end_part": min(first + each, span.end_part)})
