"""When the statements of the log make and drop a table that was never loaded. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loader.materialise.events import Came, Left, Made, Unknown, known_events
from loader.model.table import TableName
from loader.staging.documents import Manifest


@dataclass(frozen=True)
class Origin:
    """Where the log begins to hold a whole table.

    Attributes:
        seqno: right before the statement that made the table; None if it may be older than the log.
        dropped: the table does not exist any more at the end of the log.
    """

    seqno: int | None
    dropped: bool


def origin_of(
    table: TableName,
    newest_first: Iterable[Manifest],
    after: int,
    target: int,
    *,
    made: int | None = None,
    every_life: bool,
) -> Origin:
    """Return where the records of a table begin, of its last life or of all its lives.

    A life begins with CREATE TABLE, or with a RENAME to the table's name, and ends with DROP TABLE or a RENAME.
    `CREATE TABLE IF NOT EXISTS` begins one only if the log shows that the table was dropped before.

    Args:
        table: to look for.
        newest_first: the intervals with a part in (`after`, `target`].
        after: a seqno; statements and records up to it do not count.
        target: a seqno; later statements do not count.
        made: the seqno right before the statement that made the table as it is at `after`; 0 if there is no table then,
            None if that is not known.
        every_life: begin with the first life that the log holds, and not with the last one. There is no origin if the
            log also holds records of an earlier life that began before the log.

    Raises:
        UnsupportedError: a statement since then whose effect on the table is not known.
    """
    begin: int | None = None
    maybe: int | None = None  # by CREATE TABLE IF NOT EXISTS
    ends = 0  # of the life that is looked at, whose beginning was not found yet
    orphans = False  # records of that life
    dropped: bool | None = None
    for manifest in newest_first:
        for event in reversed(list(known_events(table, [manifest], after, target))):
            if isinstance(event, Unknown):
                if dropped and not every_life:
                    return Origin(None, dropped=True)  # whatever it was, nothing of it is left
                raise event.error
            if dropped is None and isinstance(event, Left | Came | Made):
                dropped = isinstance(event, Left)
            if isinstance(event, Came) or (isinstance(event, Made) and event.surely):
                begin, maybe, ends, orphans = event.seqno - 1, None, 0, False
            elif isinstance(event, Made):
                maybe = event.seqno - 1
            elif isinstance(event, Left):
                begin, orphans = (begin, orphans) if maybe is None else (maybe, False)
                maybe, ends = None, event.seqno
            if begin is not None and not every_life:
                return Origin(begin, dropped=bool(dropped))
        orphans = orphans or (begin is not None and _has_records(manifest, table, after, ends))
    if made == 0:
        dropped = True if dropped is None else dropped
        begin, orphans = (begin, orphans) if maybe is None else (maybe, False)
    elif made is not None:
        begin, orphans = made, False
    return Origin(None if orphans else begin, dropped=bool(dropped))


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
