"""Ranges: whole parts of log files that can be decoded independently.

Only the log decides where parts are cut: part n of a file holds the row events that start in its n-th `part_bytes`. A
range is one or more parts of one file, with the bytes that must be walked to decode them: from the start of the
transaction in which its first part begins, to the end of the transaction in which its last part ends.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LogRange(BaseModel):
    """Parts [first_part, end_part) of a file, decoded from the bytes [read_from, read_to)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    lognum: int
    read_from: int
    read_to: int
    first_part: int
    end_part: int


def whole_segment(file: str, lognum: int, begin: int, end: int, part_bytes: int) -> LogRange:
    """Return a segment as one range."""
    return LogRange(
        file=file,
        lognum=lognum,
        read_from=begin,
        read_to=end,
        first_part=begin // part_bytes,
        end_part=(end - 1) // part_bytes + 1,
    )
