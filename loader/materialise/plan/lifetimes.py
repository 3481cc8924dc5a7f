"""The statements that create and drop a table which was never loaded. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import (
    RenamedFrom,
    TableAltered,
    TableCreated,
    TableEvent,
    TableRemoved,
    UnreadableStatement,
    iter_events,
    may_do_nothing,
    rows_not_logged_error,
)
from loader.model.table import TableName
from loader.staging.documents import Manifest


@dataclass(frozen=True)
class TableOrigin:
    """The place from which on the log holds a table completely.

    Attributes:
        seqno: right before the statement that created the table; None if the table may be older than the log.
        dropped: the table no longer exists at the end of the log.
        last: like `seqno`, for the last life only.
        dropped_at: the seqno of the statement that dropped it, or a later seqno; 0 if it was not dropped.
    """

    seqno: int | None
    dropped: bool
    last: int | None
    dropped_at: int = 0


def find_origin(
    table: TableName,
    newest_first: Iterable[Manifest],
    after: int,
    target: int,
    *,
    made: int | None = None,
    unread_until: int = 0,
    every_life: bool,
) -> TableOrigin:
    """Return where the records of a table begin.

    A life begins with CREATE TABLE, or with a RENAME to the table's name. It ends with DROP TABLE or a RENAME.
    `CREATE TABLE IF NOT EXISTS` begins a life only if the log shows that the table was dropped before.

    Args:
        table: the table to look for.
        newest_first: the intervals with a part in (`after`, `target`], newest first.
        after: a seqno. Statements and records up to it do not count.
        target: a seqno. Later statements do not count.
        made: the seqno right before the statement that created the table which exists at `after`, or at `unread_until`
            if that is later. It is 0 if no table exists then, and None if that is unknown.
        unread_until: the seqno where the last part of the log ends that was read without the table, or not at all.
            Earlier statements do not tell whether the table exists. 0 if there is no such part.
        every_life: begin with the first life that the log holds. There is no origin if the log also holds records of
            an earlier life that began before the log. Otherwise begin with the last life, or with an earlier life that
            ended with a RENAME, since another table takes its rows.

    Raises:
        UnsupportedError: the effect of a later statement on the table is unknown.
    """
    lives = _LifeScan()
    for manifest in newest_first:
        if manifest.stop_seqno <= unread_until:
            lives.orphans |= _has_records(manifest, table, after, manifest.stop_seqno)
            continue
        for event in reversed(list(iter_events(table, [manifest], after, target))):
            lives.look_at(event)
            if lives.doubted:
                return lives.origin(every_life=every_life)
        if lives.begin is not None and _has_records(manifest, table, after, lives.ends):
            lives.orphans = True
    lives.close(made, max(after, unread_until))
    return lives.origin(every_life=every_life)


@dataclass
class _LifeScan:
    """A scan over the lives of a table, from the newest statement back to the oldest.

    Attributes:
        begin: the seqno right before the statement that began the oldest life found so far.
        last: the same for the newest life.
        needed: the same for the oldest life that counts.
        counts: the current life counts. It is the newest life, or another table takes its rows.
        maybe: the seqno right before a CREATE TABLE IF NOT EXISTS that may have begun the current life.
        ends: the seqno at which the current life ended; 0 once its beginning was found.
        orphans: the log holds records of a life whose beginning was not found.
        dropped: the newest statement ended a life; None until a statement was found.
        dropped_at: the seqno of that statement.
        doubt: why the effect of a statement on the current life is unknown.
        doubted: the doubt concerns a life that existed. So older statements decide nothing.
    """

    begin: int | None = None
    last: int | None = None
    needed: int | None = None
    counts: bool = True
    maybe: int | None = None
    ends: int = 0
    orphans: bool = False
    dropped: bool | None = None
    dropped_at: int = 0
    doubt: UnsupportedError | None = None
    doubted: bool = False

    def look_at(self, event: TableEvent) -> None:
        """Take the next older statement into account."""
        if isinstance(event, UnreadableStatement):
            self.doubt = self.doubt or event.error
            self.doubted = not event.rows
            return
        if isinstance(event, TableRemoved):
            self.doubt = None  # a statement changes no rows of a table that does not exist
        if self.doubt:
            self.doubted = True
            return
        if isinstance(event, TableAltered) and event.unlogged_rows:
            self.doubt, self.doubted = rows_not_logged_error(event), True
            return
        if self.dropped is None and isinstance(event, TableRemoved | RenamedFrom | TableCreated):
            self.dropped = isinstance(event, TableRemoved)
            self.dropped_at = event.seqno if self.dropped else 0
        if isinstance(event, RenamedFrom) or (isinstance(event, TableCreated) and event.certain):
            self._begun(event.seqno - 1)
            # RENAME TABLE gave the rows of another table to this one. It also gave away this table's rows, if any.
            self.ends, self.counts = 0, isinstance(event, RenamedFrom)
        elif isinstance(event, TableCreated):
            self.maybe = event.seqno - 1
        elif isinstance(event, TableRemoved):
            if self.maybe is not None:
                self._begun(self.maybe)
            self.ends, self.counts = event.seqno, event.renamed or self.needed is None

    def close(self, made: int | None, seqno: int) -> None:
        """Add what is known about the table at `seqno`, before the oldest statement. See `find_origin`."""
        if made == 0:
            self.doubt = None
            if self.dropped is None:
                self.dropped, self.dropped_at = True, seqno
            if self.maybe is not None:
                self._begun(self.maybe)
        elif made is not None and not self.doubt:
            self._begun(made)

    def origin(self, *, every_life: bool) -> TableOrigin:
        """Return where the records begin.

        Raises:
            UnsupportedError: the doubt, if it concerns rows that are still in the table.
        """
        if self.doubt and (every_life or not (self.dropped or self.needed is not None)):
            raise self.doubt
        seqno = self.needed
        if every_life:
            seqno = None if self.orphans else self.begin
        return TableOrigin(seqno, bool(self.dropped), self.last, self.dropped_at)

    def _begun(self, seqno: int) -> None:
        self.begin = seqno
        self.last = seqno if self.last is None else self.last
        self.needed = seqno if self.counts else self.needed
        self.counts, self.maybe, self.orphans = False, None, False


def find_new_life(table: TableName, manifests: Iterable[Manifest], after: int, target: int) -> int | None:
    """Return the seqno of the last statement in (`after` + 1, `target`] that ended or began a life of a table.

    The rows that the table had before that statement are gone. Return None if there is no such statement, or if rows
    of the table can still be staged that an interval lacks.
    """
    manifests = tuple(manifests)
    incomplete = (manifest.find_incomplete(table, after, target) for manifest in manifests)
    if any(entry and not entry.hint for entry in incomplete):
        return None
    events = iter_events(table, manifests, after + 1, target)
    ends = [
        one for one in events if isinstance(one, TableRemoved | RenamedFrom | TableCreated) and not may_do_nothing(one)
    ]
    return ends[-1].seqno if ends else None


def _has_records(manifest: Manifest, table: TableName, after: int, through: int) -> bool:
    return any(file.rows and file.min_seqno <= through and file.max_seqno > after for file in manifest.files_of(table))
