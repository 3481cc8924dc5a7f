"""When the statements of the log make and drop a table that was never loaded. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loader.errors import UnsupportedError
from loader.materialise.events import Came, Left, Made, Unknown, known_events
from loader.model.table import TableName
from loader.staging.documents import Manifest


@dataclass(frozen=True)
class Origin:
    """Where the log begins to hold a whole table.

    Attributes:
        seqno: right before the statement that made the table; None if it may be older than the log.
        dropped: the table does not exist any more at the end of the log.
        last: as `seqno`, of the last life alone.
    """

    seqno: int | None
    dropped: bool
    last: int | None


def origin_of(
    table: TableName,
    newest_first: Iterable[Manifest],
    after: int,
    target: int,
    *,
    made: int | None = None,
    every_life: bool,
) -> Origin:
    """Return where the records of a table begin.

    A life begins with CREATE TABLE, or with a RENAME to the table's name, and ends with DROP TABLE or a RENAME.
    `CREATE TABLE IF NOT EXISTS` begins one only if the log shows that the table was dropped before.

    Args:
        table: to look for.
        newest_first: the intervals with a part in (`after`, `target`].
        after: a seqno; statements and records up to it do not count.
        target: a seqno; later statements do not count.
        made: the seqno right before the statement that made the table as it is at `after`; 0 if there is no table then,
            None if that is not known.
        every_life: begin with the first life that the log holds. There is no origin if the log also holds records of
            an earlier life that began before the log. Otherwise begin with the last life, or with an earlier one if
            that ended with a RENAME, since another table takes its rows.

    Raises:
        UnsupportedError: a statement since then whose effect on the table is not known.
    """
    begin: int | None = None  # of all lives so far
    last: int | None = None  # of the last one
    needed: int | None = None  # of the last one, or of an earlier one whose rows another table takes
    counts = True  # whether the life that is looked at is such a one
    maybe: int | None = None  # by CREATE TABLE IF NOT EXISTS
    ends = 0  # of the life that is looked at, whose beginning was not found yet
    orphans = False  # records of that life
    dropped: bool | None = None
    doubt: UnsupportedError | None = None  # what is not known of the life that is looked at

    def begun(seqno: int) -> None:
        nonlocal begin, last, needed, counts, maybe, orphans
        begin, last, needed = seqno, seqno if last is None else last, seqno if counts else needed
        counts, maybe, orphans = False, None, False

    for manifest in newest_first:
        for event in reversed(list(known_events(table, [manifest], after, target))):
            # Rows that a statement may have changed while there was no table are none.
            if isinstance(event, Unknown):
                doubt = doubt or event.error
            elif isinstance(event, Left):
                doubt = None
            if doubt and not (isinstance(event, Unknown) and event.rows):
                return _doubtful(doubt, needed, last, dropped=bool(dropped), every_life=every_life)
            if dropped is None and isinstance(event, Left | Came | Made):
                dropped = isinstance(event, Left)
            if isinstance(event, Came) or (isinstance(event, Made) and event.surely):
                begun(event.seqno - 1)
                ends, counts = 0, isinstance(event, Came)  # the same statement gave its rows away, if it was there
            elif isinstance(event, Made):
                maybe = event.seqno - 1
            elif isinstance(event, Left):
                if maybe is not None:
                    begun(maybe)
                ends, counts = event.seqno, event.renamed or needed is None
        orphans = orphans or (begin is not None and _has_records(manifest, table, after, ends))
    if doubt and made != 0:
        return _doubtful(doubt, needed, last, dropped=bool(dropped), every_life=every_life)
    if made == 0:
        dropped = True if dropped is None else dropped
        if maybe is not None:
            begun(maybe)
    elif made is not None:
        begun(made)
    if every_life:
        return Origin(None if orphans else begin, bool(dropped), last)
    return Origin(needed, bool(dropped), last)


def _doubtful(
    doubt: UnsupportedError, needed: int | None, last: int | None, *, dropped: bool, every_life: bool
) -> Origin:
    """Return what is known of a table of which something is not known, unless nothing of that is left."""
    if every_life or not (dropped or needed is not None):
        raise doubt
    return Origin(needed, dropped, last)


def new_life(table: TableName, manifests: Iterable[Manifest], after: int, target: int) -> int | None:
    """Return the seqno of the last statement that ended or began a life of a table, beyond `after` + 1 up to `target`.

    Nothing is left then of the rows that the table had before. None: there is no such statement, or rows were left out
    that can still be staged.
    """
    manifests = tuple(manifests)
    left_out = (one for manifest in manifests for one in manifest.left_out if one.name == table)
    if any(after < one.seqno <= target and not one.hint for one in left_out):
        return None
    events = known_events(table, manifests, after + 1, target)
    ends = [one for one in events if isinstance(one, Left | Came) or (isinstance(one, Made) and one.surely)]
    return ends[-1].seqno if ends else None


def _has_records(manifest: Manifest, table: TableName, after: int, through: int) -> bool:
    return any(file.rows and file.min_seqno <= through and file.max_seqno > after for file in manifest.of_table(table))
