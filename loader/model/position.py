"""Positions in a binary log, seqnos of transactions, and intervals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from loader.errors import DataError, UsageError

SEQNO_UNIT = 10**12
"""Offsets are below this number. A log file of 10^12 bytes is refused: its seqnos would be those of other files."""

_POSITION = re.compile(r"^(?P<base>.+)\.(?P<num>\d{6,}):(?P<pos>\d+)$")


@total_ordering
@dataclass(frozen=True)
class Position:
    """`binlog.000054:123`: base name, lognum 54, 64-bit byte offset 123 (logpos).

    Ordered by lognum, then logpos. To compare positions with different base names is an error.
    """

    basename: str
    lognum: int
    logpos: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse `name.000054:123`.

        Raises:
            UsageError: the text is not a position.
        """
        found = _POSITION.match(text)
        if not found:
            raise UsageError(f"{text!r} is not a log position", hint="write it like binlog.000054:123")
        return cls(found["base"], int(found["num"]), int(found["pos"]))

    @classmethod
    def at(cls, file: str, logpos: int) -> Position:
        """Return the position at byte `logpos` of a log file."""
        return cls.parse(f"{file}:{logpos}")

    @classmethod
    def of_seqno(cls, basename: str, seqno: int, shift: int = 0) -> Position:
        """Return the position of a seqno in a log; see `seqno`."""
        lognum, logpos = divmod(seqno, SEQNO_UNIT)
        return cls(basename, lognum - shift, logpos)

    @property
    def file(self) -> str:
        """Name of the log file."""
        return f"{self.basename}.{self.lognum:06d}"

    def seqno(self, shift: int = 0) -> int:
        """Return `(lognum + shift) * 10^12 + logpos`: readable, increasing, and equal in every rerun."""
        if not 0 <= self.logpos < SEQNO_UNIT:
            raise DataError("a log file of 10^12 bytes or more has no seqno", position=self)
        return (self.lognum + shift) * SEQNO_UNIT + self.logpos

    def __str__(self) -> str:
        return f"{self.file}:{self.logpos}"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Position):
            return NotImplemented
        if self.basename != other.basename:
            raise DataError("positions of two different logs cannot be compared", first=self, second=other)
        return (self.lognum, self.logpos) < (other.lognum, other.logpos)


@dataclass(frozen=True)
class Interval:
    """A half-open range [start, stop) of the log. Both ends are transaction boundaries."""

    start: Position
    stop: Position

    def __post_init__(self) -> None:
        if not self.start < self.stop:
            raise DataError("an interval must end after its start", start=self.start, stop=self.stop)

    def __str__(self) -> str:
        return f"[{self.start}, {self.stop})"
