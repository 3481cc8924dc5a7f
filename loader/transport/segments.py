"""The pieces of log files that an interval is made of."""

from __future__ import annotations

from collections.abc import Callable

from loader.binlog.constants import MAGIC
from loader.errors import BinlogFormatError
from loader.model.position import Interval


def segments(interval: Interval, size_of: Callable[[str], int]) -> list[tuple[str, int, int]]:
    """See Transport.segments; `size_of` gives the bytes of a file or raises GapError.

    Raises:
        BinlogFormatError: the last file ends before the interval.
    """
    start, stop = interval.start, interval.stop
    found = []
    for lognum in range(start.lognum, stop.lognum + 1):
        file = f"{start.basename}.{lognum:06d}"
        size = size_of(file)
        begin = start.logpos if lognum == start.lognum else len(MAGIC)
        end = stop.logpos if lognum == stop.lognum else size
        if end > size:
            raise BinlogFormatError("the log file ends before the interval does", file=file, size=size, position=end)
        found.append((file, begin, end))
    return found
