"""How the log stands at a position that no interval has led to."""

from __future__ import annotations

from loader.binlog.table_registry import TableRegistry
from loader.errors import BinlogFormatError
from loader.extract.gtids.marks import GtidTally, gtid_set, mark_of
from loader.extract.log_ranges import whole_segment
from loader.extract.windows import read_windows
from loader.model.gtid import joined
from loader.model.position import Position
from loader.reader.files.file_header import head_of
from loader.reader.files.log_walk import FIRST, log_bytes
from loader.staging.chain import Checkpoint
from loader.transport.base import Transport


def read_checkpoint(transport: Transport, position: Position, size: int) -> Checkpoint:
    """The GTID set and the mark of a position, from its log file, which has so many bytes.

    Raises:
        BinlogFormatError: the position is no transaction boundary, or the file is damaged.
        LoaderError: what transport and codec raise.
    """
    stop = position.logpos
    known = stop if stop > FIRST else size  # what is before a file, its first events say
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
    return Checkpoint(position, str(joined(str(before or ""), seen)), mark)


def find_log_difference(transport: Transport, checkpoint: Checkpoint) -> str:
    """In what the log before a checkpoint is another one than it was; empty: it is the same.

    Raises:
        LoaderError: what transport and codec raise.
    """
    mark, position = checkpoint.mark, checkpoint.position
    if mark is None:
        return ""
    with transport.open(position.file, FIRST, position.logpos) as file:
        found = mark_of(log_bytes(file, position.file), 0)
    if found.log != mark.log:
        return "its first event says that it was begun at another time or by another server"
    if not mark.last:
        return ""
    try:
        with transport.open(position.file, mark.last, position.logpos) as file:
            found = mark_of(log_bytes(file, position.file), mark.last)
    except BinlogFormatError as error:
        return f"no transaction begins at {mark.last} any more: {error.what}"
    return "" if found.event == mark.event else f"another transaction begins at {mark.last}"
