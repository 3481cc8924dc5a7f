"""The state of the log at a position that is not the stop of an interval."""

from __future__ import annotations

from loader.binlog.table_registry import TableRegistry
from loader.errors import BinlogFormatError
from loader.extract.gtids.marks import GtidTally, gtid_set, mark_of
from loader.extract.log_ranges import whole_segment
from loader.extract.windows import read_windows
from loader.model.gtid import union_gtids
from loader.model.position import Position
from loader.reader.files.file_header import head_of
from loader.reader.files.log_walk import FIRST, log_bytes
from loader.staging.chain import Checkpoint
from loader.transport.base import Transport


def read_checkpoint(transport: Transport, position: Position, size: int) -> Checkpoint:
    """Read the GTID set and the mark of a position from its log file.

    Args:
        transport: reads the log file.
        position: must be a transaction boundary.
        size: of the log file, in bytes.

    Raises:
        BinlogFormatError: the position is no transaction boundary, or the file is damaged.
        LoaderError: from transport or codec.
    """
    stop = position.logpos
    known = stop if stop > FIRST else size  # the first events of a file hold the GTID set before it
    with transport.open(position.file, FIRST, known) as file:
        log = log_bytes(file, position.file)
        tally = GtidTally(log.form.mariadb)
        if stop > FIRST:
            span = whole_segment(position.file, position.lognum, FIRST, stop, stop)
            registry = TableRegistry(lambda _: False, mariadb=log.form.mariadb)
            for window in read_windows(log, span, registry, stop):
                if not window.more:
                    tally.add(log, window, FIRST, stop)
        mark, before = tally.mark(log), head_of(log, known).before
    seen = gtid_set(tally.parts(), mariadb=log.form.mariadb)
    return Checkpoint(position, str(union_gtids(str(before or ""), seen)), mark)


def find_log_difference(transport: Transport, checkpoint: Checkpoint) -> str:
    """Return how the log before a checkpoint differs from the log that was read; empty if it is the same log.

    Raises:
        LoaderError: from transport or codec.
    """
    mark, position = checkpoint.mark, checkpoint.position
    if mark is None:
        return ""
    with transport.open(position.file, FIRST, position.logpos) as file:
        found = mark_of(log_bytes(file, position.file), 0)
    if found.log != mark.log:
        return "its first event shows that it was started at another time or by another server"
    if not mark.last:
        return ""
    try:
        with transport.open(position.file, mark.last, position.logpos) as file:
            found = mark_of(log_bytes(file, position.file), mark.last)
    except BinlogFormatError as error:
        return f"no transaction begins at {mark.last} now: {error.what}"
    return "" if found.event == mark.event else f"another transaction begins at {mark.last}"
