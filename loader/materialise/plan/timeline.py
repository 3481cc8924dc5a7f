"""What happened to one table, in order: its schemas between the statements that change it as a whole. Pure.

A stretch of log in which a table has one schema is an epoch. The table maps of its records tell the schema of an epoch;
the statements between two epochs tell where the values of rows that were there before come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import (
    RenamedFrom,
    TableAltered,
    TableCreated,
    TableEmptied,
    TableEvent,
    TableRemoved,
)
from loader.model.table import TableName, TableSchema
from loader.schema.evolution import ColumnOrigin, ConstantOrigin, Evolution, Origin, Step, evolve
from loader.staging.documents import Manifest, StagedFile
from loader.typemap import spark_type, widened_type

Lifecycle = Literal["", "fresh", "gone"]
"""`fresh`: the table was made and no row told its columns yet. `gone`: it was dropped or renamed away."""


@dataclass(frozen=True)
class TableState:
    """Where a table stands: its schema and applied position, and its state. A new table has no schema yet."""

    schema: TableSchema | None
    applied: int
    state: Lifecycle = ""


@dataclass(frozen=True)
class CopySource:
    """The rows of another table as it was when it was renamed, in a snapshot; None: it had none."""

    name: TableName
    schema: TableSchema
    snapshot: int | None


@dataclass(frozen=True)
class Epoch:
    """A table between two changes of it: records with `after` < seqno <= `through` have this schema.

    `origins`: where rows of the epoch before have the value of each column.
    """

    schema: TableSchema
    origins: Mapping[str, Origin]
    after: int
    through: int
    files: tuple[StagedFile, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """All epochs of a table from where it stands to `target`.

    Attributes:
        epochs: the first one is the standing table's own, if it has a schema.
        rows: of epochs from this one on count; those before it are gone, with the rows that the table has.
        copied: the rows that stand in for those of the table, in the schema of the epoch `rows`.
        state: of the table afterwards.
    """

    epochs: tuple[Epoch, ...]
    rows: int
    copied: CopySource | None
    state: Lifecycle
    target: int


FindCopySource = Callable[[TableName, int], CopySource | None]
HasRecords = Callable[[StagedFile, int, int], bool]


class _TimelineBuilder:
    """The table as it becomes while its events are passed by."""

    def __init__(self, standing: TableState) -> None:
        self.state: Lifecycle = standing.state
        self._began = standing.state
        self.low = standing.applied
        self.steps: list[Step] = []
        self.epochs: list[Epoch] = []
        self.rows = 0
        self.copied: CopySource | None = None
        if standing.schema is not None:
            origins = {column.name: ColumnOrigin(column.name) for column in standing.schema.columns}
            self.epochs.append(Epoch(standing.schema, origins, standing.applied, standing.applied))

    @property
    def moved(self) -> bool:
        """Whether anything happened yet."""
        return bool(self.steps or self.epochs[1:] or self.rows or self.state != self._began)

    @property
    def schema(self) -> TableSchema | None:
        """Of the last epoch."""
        return self.epochs[-1].schema if self.epochs else None

    def empty(self) -> None:
        """Forget all rows so far."""
        self.rows, self.copied = len(self.epochs), None

    def append(self, evolution: Evolution, through: int, files: tuple[StagedFile, ...]) -> None:
        self.epochs.append(Epoch(evolution.schema, evolution.origins, self.low, through, files))
        self.steps = []


def build_timeline(
    name: TableName,
    standing: TableState,
    target: int,
    manifests: Sequence[Manifest],
    events: Iterable[TableEvent],
    copy_of: FindCopySource,
    holds: HasRecords,
    *,
    apart: bool = False,
    over_renames: bool = False,
) -> Timeline:
    """The timeline from where a table stands to `target`, or to right before it gets another name, or another its own.

    Args:
        name: of the table.
        standing: where it stands.
        target: of the merge.
        manifests: the unbroken run of intervals from `standing.applied` to `target`.
        events: what befell the table there, in order.
        copy_of: a table as it was just before a seqno.
        holds: whether a file has records that are newer than a seqno, up to another one.
        apart: it also ends before each event, so that what comes and goes between two of them is seen.
        over_renames: it goes on where the table gets another name, as no other table will take its rows.

    Raises:
        UnsupportedError: rows or columns whose values the log does not tell.
    """
    files = _table_files(name, manifests, standing.applied)
    fold = _TimelineBuilder(standing)
    for event in events:
        before = event.seqno - 1  # rows of CREATE TABLE ... SELECT have the seqno of the statement
        _add_records(fold, name, files, before, manifests, holds)
        # Another table's rows are taken as they were right before; so each is brought there first, on its own.
        # A statement may be several events, of which only the first one can be stopped at.
        alone = apart and fold.schema is not None and before > standing.applied
        if fold.moved and (isinstance(event, RenamedFrom) or (_gives_rows_away(event) and not over_renames) or alone):
            return _finish(fold, before)
        fold.low = before
        _apply_event(fold, event, copy_of)
    _add_records(fold, name, files, target, manifests, holds)
    return _finish(fold, target)


def _gives_rows_away(event: TableEvent) -> bool:
    """Return whether another table takes the rows of this one."""
    return isinstance(event, TableRemoved) and event.renamed


def _finish(fold: _TimelineBuilder, target: int) -> Timeline:
    _close(fold, target)
    return Timeline(tuple(fold.epochs), fold.rows, fold.copied, fold.state, target)


def _apply_event(fold: _TimelineBuilder, event: TableEvent, copy_of: FindCopySource) -> None:
    """One event, which comes after all records so far."""
    if isinstance(event, TableAltered):
        fold.steps.append(event.step)
    elif isinstance(event, TableEmptied):
        _close(fold, event.seqno)
        fold.empty()
    elif isinstance(event, TableRemoved):
        _close(fold, event.seqno)
        fold.state = "gone"
    elif isinstance(event, TableCreated):
        if event.surely or fold.state == "gone":
            fold.empty()
            fold.state, fold.steps = "fresh", []
    elif isinstance(event, RenamedFrom):
        _take_rows(fold, event, copy_of(event.other, event.seqno))


def _close(fold: _TimelineBuilder, seqno: int) -> None:
    """Bring the schema up to date, where statements changed it and no record since tells it."""
    if fold.steps and fold.state == "" and fold.schema is not None:
        fold.append(evolve(fold.schema, fold.steps, None), seqno, ())
    fold.steps = []


def _take_rows(fold: _TimelineBuilder, event: RenamedFrom, copied: CopySource | None) -> None:
    """Take over another table's rows and columns."""
    fold.empty()
    if copied is None:
        fold.state, fold.steps = "fresh", []
        return
    taken = replace(copied.schema, name=event.name)
    fold.append(Evolution(taken, match_columns(fold.schema, taken)), event.seqno, ())
    fold.steps = list(event.steps)
    fold.state, fold.copied = "", copied


def _add_records(
    fold: _TimelineBuilder,
    name: TableName,
    files: Sequence[StagedFile],
    through: int,
    manifests: Sequence[Manifest],
    holds: HasRecords,
) -> None:
    """The records after the last event up to `through`, which have one schema."""
    if through <= fold.low:
        return  # no position lies there: a file that begins before it and ends after it has no record in it
    here = [file for file in files if file.min_seqno <= through and file.max_seqno > fold.low]
    inside = [f for f in here if fold.low < f.min_seqno <= through or fold.low < f.max_seqno <= through]
    if fold.state == "fresh" and not inside:  # a record would tell the columns of the table, so a guess will not do
        inside = here = [file for file in here if holds(file, fold.low, through)]
    ids = dict.fromkeys(file.schema_id for file in inside or here)
    schemas = [_staged_schema(manifests, schema_id) for schema_id in ids]
    evolution = _evolve_to_staged(fold, name, schemas) if inside else _evolve_if_possible(fold, schemas)
    if evolution is not None:
        chosen = evolution.schema.schema_id
        fold.append(evolution, through, tuple(file for file in here if file.schema_id == chosen))
        fold.state = ""


def _evolve_to_staged(fold: _TimelineBuilder, name: TableName, schemas: Sequence[TableSchema]) -> Evolution:
    """To the schema of records that are known to be in the stretch."""
    if fold.state == "gone" or len(schemas) > 1:
        gone = "rows were changed of a table that was dropped or renamed away"
        raise UnsupportedError(
            gone if fold.state == "gone" else "the table has records of two schemas with no statement between them",
            why="a statement is not in the log, as when a session sets sql_log_bin=0",
            hint=name.load_again,
            table=name,
        )
    if fold.state == "fresh" or fold.schema is None:
        return Evolution(schemas[0], match_columns(fold.schema, schemas[0]))
    return evolve(fold.schema, fold.steps, schemas[0])


def _evolve_if_possible(fold: _TimelineBuilder, schemas: Sequence[TableSchema]) -> Evolution | None:
    """To the one schema that fits, of files that begin before the stretch and end after it.

    None: they have no records here. Should they have some all the same, reading them fails.
    """
    if fold.state == "gone":
        return None
    for schema in schemas:
        try:
            return _evolve_to_staged(fold, schema.name, [schema])
        except UnsupportedError:
            continue
    return None


def match_columns(old: TableSchema | None, new: TableSchema) -> dict[str, Origin]:
    """Origins of the columns of a table that was made anew: a column of the same name stays one if its type can."""
    before = {column.name: column for column in old.columns} if old else {}
    return {
        column.name: ColumnOrigin(column.name)
        if column.name in before and widened_type(spark_type(before[column.name]), spark_type(column))
        else ConstantOrigin(None)
        for column in new.columns
    }


def compose_origins(epochs: Sequence[Epoch]) -> dict[str, Origin]:
    """Where rows of the first of these epochs have the values of the columns of the last one."""
    origins: dict[str, Origin] = {column.name: ColumnOrigin(column.name) for column in epochs[-1].schema.columns}
    for epoch in reversed(epochs[1:]):
        origins = {
            name: epoch.origins[origin.old] if isinstance(origin, ColumnOrigin) else origin
            for name, origin in origins.items()
        }
    return origins


def _table_files(name: TableName, manifests: Sequence[Manifest], applied: int) -> list[StagedFile]:
    found = (file for manifest in manifests for file in manifest.of_table(name))
    return [file for file in found if file.rows and file.max_seqno > applied]


def _staged_schema(manifests: Sequence[Manifest], schema_id: str) -> TableSchema:
    return next(manifest.schema_of(schema_id) for manifest in manifests if schema_id in manifest.schemas)
