"""Finding the events of XA transactions that are not known, in the older log files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loader.binlog.table_registry import TableRegistry
from loader.extract.gtids.skipped_transactions import skip_reasons
from loader.extract.log_ranges import whole_segment
from loader.extract.window_notes import Notes
from loader.extract.windows import counted_bytes, ignore_unfinished, read_windows
from loader.extract.xa.prepared_groups import held_group
from loader.extract.xa_events import Decided, Prepared, XaEvent
from loader.model.position import Position
from loader.reader.files.log_files import lognum_of
from loader.reader.files.log_walk import log_bytes
from loader.staging.documents import HeldGroup, Skip
from loader.transport.base import Transport
from loader.transport.segments import segments_before


def find_prepared(transport: Transport, before: Position, skip: Skip, missing: Sequence[Decided]) -> list[HeldGroup]:
    """Return the groups that these commits decide, searching log files before a position, newest first.

    No plan decided whether they are skipped, so `skip` does. A group that is in none of the remaining files is not
    found. A newest event that decides the identifier belongs to another group.

    Raises:
        LoaderError: from transport or codec.
    """
    newest = newest_events(transport, before, skip, {event.xid for event in missing})
    return [held_group(event) for event in newest if isinstance(event, Prepared)]


def newest_events(transport: Transport, before: Position, skip: Skip, xids: set[str]) -> Iterator[XaEvent]:
    """Yield the newest event of each of these transactions before a position, if the remaining files have one.

    Raises:
        LoaderError: from transport or codec.
    """
    wanted = set(xids)
    for segment in segments_before(transport, before) if wanted else ():
        events = _xa_events(transport, skip, before.file, *segment)
        newest = {event.xid: event for event in events if event.xid in wanted}
        yield from newest.values()
        wanted -= newest.keys()
        if not wanted:
            return


def _xa_events(transport: Transport, skip: Skip, newest: str, file: str, begin: int, end: int) -> Iterator[XaEvent]:
    span = whole_segment(file, lognum_of(file), begin, end, end)
    with transport.open(file, begin, end) as opened:
        log = log_bytes(opened, file)
        registry = TableRegistry(lambda _: False, mariadb=log.form.mariadb, markers=skip.markers())
        notes = Notes(log, span, registry, 0)
        cut_off = ignore_unfinished(log, newest=file == newest)  # nothing in an unfinished transaction was prepared
        for window in read_windows(log, span, registry, end, cut_off):
            why = skip_reasons(skip, window.index.transactions)
            for note in notes.of(window, why, counted_bytes(span, end)):
                if isinstance(note, Prepared | Decided):
                    yield note
