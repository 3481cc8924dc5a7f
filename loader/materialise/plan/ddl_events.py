"""What befalls one table as a whole, read from the barriers of the intervals, in order. Pure."""

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
    """A change of the table as a whole, by the transaction with that seqno."""

    seqno: int
    position: str


@dataclass(frozen=True)
class TableAltered(TableEvent):
    """Its columns or its key changed."""

    step: Step


@dataclass(frozen=True)
class TableEmptied(TableEvent):
    """All its rows went."""


@dataclass(frozen=True)
class TableRemoved(TableEvent):
    """It was dropped, or got another name (`renamed`)."""

    renamed: bool = False


@dataclass(frozen=True)
class TableCreated(TableEvent):
    """A new, empty table; `surely` unless the statement does nothing where one is there already."""

    surely: bool


@dataclass(frozen=True)
class RenamedFrom(TableEvent):
    """Another table got its name, altered by the same statement on the way."""

    name: TableName
    other: TableName
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class UnreadableStatement(TableEvent):
    """What a statement did to the table is not known; `error` says why. `rows`: it can only have changed rows."""

    error: UnsupportedError
    rows: bool = False


def collect_events(
    name: TableName, manifests: Sequence[Manifest], applied: int, target: int, *, gone: bool = False
) -> list[TableEvent]:
    """What the barriers with `applied` < seqno <= `target` do to a table, in their order.

    While the table does not exist, which is so at `applied` if it is `gone`, no statement changes rows of it.

    Raises:
        UnsupportedError: a statement that may concern the table and cannot be read, or that changed rows which the log
            does not have.
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
    """Do as events_of, with an event for each statement that it would refuse."""
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


def check_initial_load(name: TableName, events: Sequence[TableEvent], exact_at: Callable[[], int]) -> None:
    """Refuse to go over a statement that altered the table while its initial load read it.

    A load begins anew when the definition of its table changes. It cannot see a definition that changes and is the same
    again, nor names that are swapped among columns of one type: rows that were read after it would be altered twice.

    Args:
        name: of the table.
        events: what the barriers after its applied position do to it, in their order.
        exact_at: gives the seqno up to which its last initial load may have seen more than its position.

    Raises:
        UnsupportedError: there is such a statement.
    """
    for event in events:
        if isinstance(event, TableAltered):
            if event.seqno > exact_at():
                return
            raise UnsupportedError(
                "the table was altered while its initial load read it",
                why="its definition is the same as before, so the load did not notice: some rows were read before the"
                " statement, and others after it",
                hint=name.load_again,
                table=name,
                position=event.position,
            )
        if not isinstance(event, TableCreated) or event.surely:
            return  # none of the rows that the load read are left


def read_barrier(barrier: Barrier) -> tuple[changes.TableChange, ...]:
    """What the statement of a barrier does to tables, in order; of rows that it changes nothing is said."""
    if writes_rows(barrier):
        return ()
    database, mode = barrier.database, barrier.sql_mode
    return table_changes(barrier.statement, database, mode, barrier.mariadb, folds=barrier.folds)


def writes_rows(barrier: Barrier) -> bool:
    """Whether the barrier is a statement that changed rows or took them back."""
    return _writes(barrier.statement, barrier.database, barrier.sql_mode, barrier.mariadb)


@lru_cache(maxsize=4096)  # every table of the source asks for the same barriers
def _writes(statement: str, database: str, sql_mode: int, mariadb: bool) -> bool:
    return writes_by_statement(statement, database, sql_mode, mariadb)


def _unlogged_rows_error(name: TableName, barrier: Barrier) -> UnsupportedError:
    """The error of a table whose rows a statement changed, or may have changed, without row events."""
    undone = barrier.statement.lstrip()[:8].upper() == "ROLLBACK"
    reload = name.load_again
    if undone:
        return UnsupportedError(
            "rows of the table were logged and then rolled back",
            why=f"the log has {barrier.statement[:80]!r} behind them: the transaction also changed a table of an engine"
            " without transactions, or a temporary table; the log does not tell which rows are left",
            hint=reload,
            table=name,
            position=barrier.position,
        )
    if barrier.statement.startswith("XA COMMIT"):
        return UnsupportedError(
            "an XA transaction was committed whose rows are in no log file at hand",
            why=f"{barrier.statement[:200]}: it was prepared before the oldest one, and may have changed any table",
            hint=reload,
            table=name,
            position=barrier.position,
        )
    maybe = "" if barrier.tables else "; triggers, foreign keys or functions may have changed any captured table"
    return UnsupportedError(
        "rows were changed by a statement in the log, which does not say which rows",
        why=f"a session logged with binlog_format STATEMENT or MIXED: {barrier.statement[:200]}{maybe}",
        hint=f"let all sessions log with binlog_format=ROW; then, {reload}",
        table=name,
        position=barrier.position,
    )


@dataclass
class _StatementEvents:
    """One statement, read for one table.

    Attributes:
        was: the name that each table had before the statement, None where none is left.
    """

    name: TableName
    barrier: Barrier
    read: tuple[changes.TableChange, ...]
    was: dict[TableName, TableName | None] = field(default_factory=dict)
    steps: dict[TableName, list[Step]] = field(default_factory=dict)

    def events(self) -> Iterator[TableEvent]:
        """See events_of."""
        at = (self.barrier.seqno, self.barrier.position)
        for change in self.read:
            yield from self._single(change)
        before = self.was.get(self.name, self.name)
        if before is None:
            yield TableRemoved(*at, renamed=True)
        elif before != self.name:
            yield RenamedFrom(*at, self.name, before, tuple(self.steps.get(before, ())))
        else:
            yield from (TableAltered(*at, step) for step in self.steps.get(self.name, ()))

    def _single(self, change: changes.TableChange) -> Iterator[TableEvent]:
        at = (self.barrier.seqno, self.barrier.position)
        if isinstance(change, changes.Unreadable):
            if change.table in (None, self.name):
                raise self._unreadable(change.why)
        elif isinstance(change, changes.Renamed):
            self.was[change.new] = self.was.get(change.old, change.old)
            self.was[change.old] = None
        elif isinstance(change, changes.Altered):
            before = self.was.get(change.table, change.table)
            if before is not None and change.actions:
                step = Step(change, bool(self.barrier.sql_mode & STRICT), self.barrier.position)
                self.steps.setdefault(before, []).append(step)
        elif isinstance(change, changes.SchemaDropped):
            if change.schema == self.name.schema:
                yield TableRemoved(*at)
        elif not isinstance(change, changes.SchemaDefined) and change.table == self.name:
            yield self._whole(change)

    def _whole(self, change: changes.Created | changes.Dropped | changes.Truncated) -> TableEvent:
        at = (self.barrier.seqno, self.barrier.position)
        if isinstance(change, changes.Created):
            return TableCreated(*at, surely=not change.if_not_exists)
        return TableRemoved(*at) if isinstance(change, changes.Dropped) else TableEmptied(*at)

    def _unreadable(self, why: str) -> UnsupportedError:
        what = "made a table that is not covered" if why == changes.VERSIONED else "may change the table cannot be read"
        return UnsupportedError(
            f"a statement that {what}: {self.barrier.statement[:200]}",
            why=why,
            hint=changes.recovery_hint(self.name, why),
            table=self.name,
            position=self.barrier.position,
        )
