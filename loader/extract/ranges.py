"""Splitting a segment of a log file into ranges of whole parts, at transaction boundaries."""

from __future__ import annotations

from loader.binlog import walk as w
from loader.binlog.index import LogIndex
from loader.extract.span import LogRange


def split(segment: LogRange, index: LogIndex, part_bytes: int, pieces: int) -> list[LogRange]:
    """The segment as at most `pieces` ranges of about as many parts each, from the index of all of it.

    A range reads from the end of the last transaction before its parts to the start of the first one behind them, so
    that it also walks those of its events that stand between transactions.
    """
    parts = segment.end_part - segment.first_part
    per_range = -(-parts // min(pieces, parts))
    starts, ends = index.transactions[:, w.T_START], index.transactions[:, w.T_END]
    ranges = []
    for first in range(segment.first_part, segment.end_part, per_range):
        end = min(first + per_range, segment.end_part)
        before = int((ends <= first * part_bytes).sum())
        until = int((starts < end * part_bytes).sum())
        bounds = {
            "read_from": int(ends[before - 1]) if before else segment.read_from,
            "read_to": int(starts[until]) if until < len(starts) else segment.read_to,
            "first_part": first,
            "end_part": end,
        }
        ranges.append(segment.model_copy(update=bounds))
    return ranges
