"""Cutting a segment of a log file into ranges of whole parts, by hopping over its headers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loader.extract.span import LogRange
from loader.reader.kernel import begins
from loader.reader.walking import BLOCK, LogBytes


def cut(log: LogBytes, rest: LogRange, part_bytes: int, pieces: int) -> Iterator[LogRange]:
    """The segment `rest` in ranges that are read from a GTID event to another, a part each where transactions allow it.

    Parts that one transaction reaches over come as at most `pieces` ranges, each of which walks all of it. A log
    without GTID events (servers before 5.7 and 10.0) is such a transaction to this. Checksums are not looked at: the
    walk of each range does that.
    """
    at = rest.read_from
    found = np.array([at, -1], np.int64)
    block = np.empty(BLOCK, np.uint8)
    while at < rest.read_to and rest.first_part + 1 < rest.end_part:
        got = log.fill(block[: min(len(block), rest.read_to - at)], at)
        used = begins(block, got, at, (rest.first_part + 1) * part_bytes, found)
        if not used and found[1] < 0:
            break  # no event: the range's own walk says so
        at += used
        if found[1] < 0:
            continue
        before, first = (int(place) for place in found)
        part = first // part_bytes
        yield from _shared(rest.model_copy(update={"read_to": first, "end_part": part}), pieces)
        read_from = first if first == part * part_bytes else before
        rest = rest.model_copy(update={"read_from": read_from, "first_part": part})
        found[:] = first, -1
    yield from _shared(rest, pieces)


def _shared(span: LogRange, pieces: int) -> Iterator[LogRange]:
    """The parts of a range as at most so many ranges over the same bytes."""
    parts = span.end_part - span.first_part
    each = -(-parts // min(pieces, parts))
    for first in range(span.first_part, span.end_part, each):
        yield span.model_copy(update={"first_part": first, "end_part": min(first + each, span.end_part)})
