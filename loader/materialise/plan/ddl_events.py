"""DDL events of one table, read from the barriers of the intervals, in log order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from loader.errors import UnsupportedError
from loader.model.table import TableName
from loader.schema import changes
from loader.schema.evolution import STRICT, Step
from loader.schema.statement_reader import table_changes
from loader.schema.statements import writes_by_statement
from loader.staging.documents import Barrier, Manifest


@dataclass(frozen=True)
class TableEvent:
    """A change of the table as a whole, by the transaction with this seqno."""

    seqno: int
    position: str


@dataclass(frozen=True)
class TableAltered(TableEvent):
    """ALTER TABLE changed its columns or its key, or rows without logging them."""

    step: Step

    @property
    def unlogged_rows(self) -> str:
        """Why a table without rows may have rows after the statement; empty if it has none."""
        added = (one for one in self.step.altered.actions if isinstance(one, changes.Reload) and one.adds_rows)
        return "; ".join(one.reason for one in added)


@dataclass(frozen=True)
class TableEmptied(TableEvent):
    """TRUNCATE removed all its rows."""


@dataclass(frozen=True)
class TableRemoved(TableEvent):
    """The table was dropped, or renamed to another name (`renamed`)."""

    renamed: bool = False


@dataclass(frozen=True)
class TableCreated(TableEvent):
    """CREATE TABLE made an empty table. It is not `certain` with IF NOT EXISTS, which skips an existing table."""

    certain: bool


@dataclass(frozen=True)
class RenamedFrom(TableEvent):
    """Another table was renamed to this table's name.

    With IF EXISTS, MariaDB also logs the statement if it renamed nothing.

    Attributes:
        name: this table.
        others: the other table, by its old name. With IF EXISTS there can be several: one of them existed, or none.
        steps: what the same statement altered in the other table.
        if_exists: maybe none of the others existed.
        keeps: if this table existed before the statement, nothing was renamed to its name.
    """

    name: TableName
    others: tuple[TableName, ...]
    steps: tuple[Step, ...] = ()
    if_exists: bool = False
    keeps: bool = False


@dataclass(frozen=True)
class UnreadableStatement(TableEvent):
    """The effect of a statement on the table is unknown.

    Attributes:
        error: the reason.
        rows: the statement can only have changed rows, not the table itself.
    """

    error: UnsupportedError
    rows: bool = False


def collect_events(
    name: TableName, manifests: Sequence[Manifest], applied: int, target: int, *, gone: bool = False
) -> list[TableEvent]:
    """Return the DDL events of a table in the barriers with `applied` < seqno <= `target`, in log order.

    Args:
        name: the table.
        manifests: the intervals with these barriers.
        applied: a seqno.
        target: a seqno.
        gone: the table does not exist at `applied`. While it does not exist, no statement changes rows of it.

    Raises:
        UnsupportedError: a statement that may concern the table cannot be read, or it changed rows that are not in the
            log.
    """
    found: list[TableEvent] = []
    for event in iter_events(name, manifests, applied, target):
        if isinstance(event, UnreadableStatement):
            if gone and event.rows:
                continue
            raise event.error
        gone = isinstance(event, TableRemoved) or (gone and not isinstance(event, TableCreated | RenamedFrom))
        found.append(event)
    return found


def iter_events(name: TableName, manifests: Iterable[Manifest], applied: int, target: int) -> Iterator[TableEvent]:
    """Yield the events that collect_events returns, and an UnreadableStatement where it raises an error."""
    for manifest in manifests:
        for barrier in manifest.barriers:
            concerned = not barrier.tables or str(name) in barrier.tables
            if concerned and applied < barrier.seqno <= target:
                try:
                    yield from _read_events(name, barrier)
                except UnsupportedError as error:
                    yield UnreadableStatement(barrier.seqno, barrier.position, error, writes_rows(barrier))


def _read_events(name: TableName, barrier: Barrier) -> list[TableEvent]:
    if writes_rows(barrier):
        raise _unlogged_rows_error(name, barrier)
    return list(_StatementEvents(name, barrier, read_barrier(barrier)).events())


def may_do_nothing(event: TableEvent) -> bool:
    """Return whether a statement changes nothing if the table exists."""
    return (isinstance(event, TableCreated) and not event.certain) or (isinstance(event, RenamedFrom) and event.keeps)


def check_initial_load(name: TableName, events: Sequence[TableEvent], exact_at: Callable[[], int]) -> None:
    """Verify that no statement altered the table while its initial load read it.

    A load starts again when the definition of its table changes. It cannot detect a definition that changes back, or
    swapped names of columns of one type. The merge would then alter rows twice that the load read after the statement.

    Args:
        name: the table.
        events: the DDL events after its applied position, in log order.
        exact_at: returns the seqno up to which the last initial load may include later changes.

    Raises:
        UnsupportedError: the table was altered during its initial load.
    """
    for event in events:
        if isinstance(event, TableAltered):
            if event.seqno > exact_at():
                return
            raise UnsupportedError(
                "the table was altered while its initial load read it",
                why="its definition changed back, so the load did not notice: some rows were read before the"
                " statement, and others after it",
                hint=name.load_again,
                table=name,
                position=event.position,
            )
        if not may_do_nothing(event):
            return  # no row that the load read exists any more


def rows_not_logged_error(event: TableAltered) -> UnsupportedError:
    """Return the error of a table that gets rows from a statement, such as those of a partition."""
    name = event.step.altered.table
    return UnsupportedError(
        "a statement gave rows to the table that are not in the log",
        why=event.unlogged_rows,
        hint=name.load_again,
        table=name,
        position=event.position,
    )


def read_barrier(barrier: Barrier) -> tuple[changes.TableChange, ...]:
    """Return the changes of tables by the statement of a barrier, in order. Changes of rows are not included."""
    if writes_rows(barrier):
        return ()
    database, mode = barrier.database, barrier.sql_mode
    return table_changes(
        barrier.statement,
        database,
        mode,
        barrier.mariadb,
        folds=barrier.folds,
        unlogged_cascades=barrier.unlogged_cascades,
    )


def writes_rows(barrier: Barrier) -> bool:
    """Return whether the barrier is a statement that changed rows, or that rolled back logged rows."""
    return _writes(barrier.statement, barrier.database, barrier.sql_mode, barrier.mariadb)


@lru_cache(maxsize=4096)  # every table of the source asks for the same barriers
def _writes(statement: str, database: str, sql_mode: int, mariadb: bool) -> bool:
    return writes_by_statement(statement, database, sql_mode, mariadb)


def _unlogged_rows_error(name: TableName, barrier: Barrier) -> UnsupportedError:
    """Return the error for a table whose rows a statement changed, or may have changed, without row events."""
    rolled_back = barrier.statement.lstrip()[:8].upper() == "ROLLBACK"
    reload = name.load_again
    if rolled_back:
        return UnsupportedError(
            "rows of the table were logged and then rolled back",
            why=f"the log has {barrier.statement[:80]!r} after them: the transaction also changed a table of an engine"
            " without transactions, or a temporary table; the log does not say which rows remain",
            hint=reload,
            table=name,
            position=barrier.position,
        )
    if barrier.statement.startswith("XA COMMIT"):
        return UnsupportedError(
            "an XA transaction was committed whose rows are in no available log file",
            why=f"{barrier.statement[:200]}: it was prepared before the oldest file, and may have changed any table",
            hint=reload,
            table=name,
            position=barrier.position,
        )
    if barrier.statement.startswith("XA ROLLBACK"):
        return UnsupportedError(
            "an XA transaction was rolled back after its commit was logged",
            why=f"{barrier.statement[:200]}: MariaDB crashed while it committed; its rows may be in any table",
            hint=reload,
            table=name,
            position=barrier.position,
        )
    maybe = "" if barrier.tables else "; triggers, foreign keys or functions may have changed any captured table"
    return UnsupportedError(
        "the log holds a statement that changed rows, instead of the rows",
        why=f"a session logged with binlog_format STATEMENT or MIXED: {barrier.statement[:200]}{maybe}",
        hint=f"let all sessions log with binlog_format=ROW; then, {reload}",
        table=name,
        position=barrier.position,
    )


@dataclass
class _StatementEvents:
    """The events of one statement for one table.

    Attributes:
        old_names: by name after the statement, the name of that table before it. Empty if no table has the name after
            the statement. With IF EXISTS there can be several names, of which at most one existed.
        if_exists: a table is renamed if it exists.
        steps: by old name, the ALTER TABLE steps of the statement.
    """

    name: TableName
    barrier: Barrier
    read: tuple[changes.TableChange, ...]
    old_names: dict[TableName, tuple[TableName, ...]] = field(default_factory=dict)
    if_exists: bool = False
    steps: dict[TableName, list[Step]] = field(default_factory=dict)

    def events(self) -> Iterator[TableEvent]:
        """Yield the events, in order."""
        at = (self.barrier.seqno, self.barrier.position)
        for change in self.read:
            yield from self._single(change)
        before = self._old_names(self.name)
        others = tuple(other for other in before if other != self.name)
        if not before:
            yield TableRemoved(*at, renamed=True)
        elif others:
            steps = tuple(step for other in others for step in self.steps.get(other, ()))
            yield RenamedFrom(*at, self.name, others, steps, self.if_exists, keeps=self.name in before)
        else:
            yield from (TableAltered(*at, step) for step in self.steps.get(self.name, ()))

    def _old_names(self, name: TableName) -> tuple[TableName, ...]:
        return self.old_names.get(name, (name,))

    def _single(self, change: changes.TableChange) -> Iterator[TableEvent]:
        at = (self.barrier.seqno, self.barrier.position)
        if isinstance(change, changes.Unreadable):
            if change.table in (None, self.name):
                raise self._unreadable(change.why)
        elif isinstance(change, changes.Renamed):
            self.if_exists |= change.if_exists
            moved, kept = self._old_names(change.old), self._old_names(change.new) if change.if_exists else ()
            self.old_names[change.old] = ()
            # Last: servers log a rename to the same name.
            self.old_names[change.new] = tuple(dict.fromkeys((*moved, *kept)))
        elif isinstance(change, changes.Altered):
            for before in self._old_names(change.table) if change.actions else ():
                step = Step(change, bool(self.barrier.sql_mode & STRICT), self.barrier.position, self.barrier.mariadb)
                self.steps.setdefault(before, []).append(step)
        elif isinstance(change, changes.SchemaDropped):
            if change.schema == self.name.schema:
                yield TableRemoved(*at)
        elif isinstance(change, changes.Shadowed):
            if change.table == self.name:
                raise self._shadowed()
        elif not isinstance(change, changes.SchemaDefined) and change.table == self.name:
            yield self._whole(change)

    def _whole(self, change: changes.Created | changes.Dropped | changes.Truncated) -> TableEvent:
        at = (self.barrier.seqno, self.barrier.position)
        if isinstance(change, changes.Created):
            return TableCreated(*at, certain=not change.if_not_exists)
        return TableRemoved(*at) if isinstance(change, changes.Dropped) else TableEmptied(*at)

    def _shadowed(self) -> UnsupportedError:
        return UnsupportedError(
            f"a statement made a temporary table with the name of the table: {self.barrier.statement[:200]}",
            why="the session does not log in ROW format, so later statements with this name may mean either table",
            hint=f"end the session, let all sessions log with binlog_format=ROW; then, {self.name.load_again}",
            table=self.name,
            position=self.barrier.position,
        )

    def _unreadable(self, why: str) -> UnsupportedError:
        what = "made an unsupported table" if why in changes.UNSUPPORTED else "may change the table cannot be read"
        return UnsupportedError(
            f"a statement that {what}: {self.barrier.statement[:200]}",
            why=why,
            hint=changes.recovery_hint(self.name, why),
            table=self.name,
            position=self.barrier.position,
        )
