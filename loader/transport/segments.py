"""The ranges of log files that an interval consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from loader.binlog.constants import MAGIC
from loader.errors import GapError
from loader.model.position import Interval, Position
from loader.transport.base import LogLags, Segment, Transport
from loader.transport.file_end import check_end


def segments(interval: Interval, size_of: Callable[[str], int]) -> list[tuple[str, int, int]]:
    """See Transport.segments; `size_of` returns the bytes of a file or raises GapError.

    Raises:
        LogLags: the last file ends before the interval.
    """
    start, stop = interval.start, interval.stop
    found = []
    for lognum in range(start.lognum, stop.lognum + 1):
        file = f"{start.basename}.{lognum:06d}"
        size = size_of(file)
        begin = start.logpos if lognum == start.lognum else len(MAGIC)
        end = stop.logpos if lognum == stop.lognum else size
        if end > size:
            raise lags(file, size, end)
        found.append((file, begin, end))
    return found


def segments_before(transport: Transport, before: Position) -> Iterator[Segment]:
    """Yield the range of each log file up to a position, newest first, as far as the log goes back.

    Raises:
        LoaderError: from transport, except for a missing file.
    """
    stop = before
    while True:
        start = Position(stop.basename, stop.lognum - (stop.logpos == len(MAGIC)), len(MAGIC))
        try:
            yield transport.segments(Interval(start, stop))[0]
        except GapError:
            return
        stop = start


def check_whole(interval: Interval, transport: Transport, sizes: Mapping[str, int]) -> None:
    """Check that no file of the interval is shorter than on the server.

    A copy that is truncated between two transactions looks like a complete file.

    Args:
        interval: of the log.
        transport: reads copies of the log files.
        sizes: of the files that the server has. Others were purged, so their last event tells whether they are whole.

    Raises:
        LogLags: a file is shorter.
        BinlogFormatError: a file that was purged is truncated.
    """
    for file, _, end in segments(interval, transport.size):
        if file == interval.stop.file:
            continue
        if file not in sizes:
            with transport.open(file, len(MAGIC), end) as log:
                check_end(log, file, end)
        elif end < sizes[file]:
            raise lags(file, end, sizes[file])


def lags(file: str, size: int, wanted: int) -> LogLags:
    """Return the error for a file with too few bytes."""
    return LogLags(
        "the log file ends before the interval",
        why=f"it has {size} bytes here, of at least {wanted} that the server wrote",
        hint="if the folder is a network mount or a copy that lags behind the server, run again later; otherwise"
        " copy the file again",
        file=file,
        size=size,
        position=wanted,
    )
