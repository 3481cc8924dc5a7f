"""The timeline of one table: its schemas, and the DDL statements between them, in log order. Pure.

An epoch is a range of the log in which a table has one schema. The table maps of its records give the schema of an
epoch. The statements between two epochs say where existing rows get the values of the new columns from.
"""

from __future__ import annotations

import re
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
    rows_not_logged_error,
)
from loader.model.key_labels import check_key_labels
from loader.model.table import TableName, TableSchema
from loader.schema.evolution import ColumnOrigin, ConstantOrigin, Evolution, Origin, Step, evolve
from loader.staging.documents import Manifest, StagedFile
from loader.types.warehouse import spark_type, widened_type

_HASH = re.compile(r"DB_ROW_HASH_\d+")
_PERIOD = (("row_start", "timestamp"), ("row_end", "timestamp"))
"""The names that MariaDB gives to hidden columns, which its log has: of long unique keys, and of system versioning."""

Lifecycle = Literal["", "fresh", "gone"]
"""`fresh`: the table was created, and no row has shown its columns yet. `gone`: it was dropped or renamed away."""


@dataclass(frozen=True)
class TableState:
    """The schema, applied position and lifecycle of a table. A new table has no schema yet."""

    schema: TableSchema | None
    applied: int
    state: Lifecycle = ""


@dataclass(frozen=True)
class CopySource:
    """The rows that a renamed table had, in a snapshot under its old name. Without a snapshot it had no rows.

    `hexed`: see Applied.
    """

    name: TableName
    schema: TableSchema
    snapshot: int | None
    hexed: bool = False


@dataclass(frozen=True)
class Epoch:
    """A range of the log: records with `after_seqno` < seqno <= `last_seqno` have this schema.

    Attributes:
        origins: by column, where rows of the previous epoch get its value from.
    """

    schema: TableSchema
    origins: Mapping[str, Origin]
    after_seqno: int
    last_seqno: int
    files: tuple[StagedFile, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """All epochs of a table from its applied position to `target`.

    Attributes:
        epochs: in log order. The first epoch has the table's current schema, if the table has one.
        first_epoch: index of the first epoch whose records count. If it is not 0, a statement removed all earlier rows.
        copy_source: the rows that replace those of the table, in the schema of the epoch `first_epoch`.
        state: the lifecycle of the table at `target`.
        target: a seqno.
    """

    epochs: tuple[Epoch, ...]
    first_epoch: int
    copy_source: CopySource | None
    state: Lifecycle
    target: int


FindCopySource = Callable[[RenamedFrom], CopySource | Literal["fresh", "gone"]]
"""Returns the rows that a renamed table had. `fresh`: it had none. `gone`: the statement renamed nothing."""
HasRecords = Callable[[StagedFile, int, int], bool]
"""Returns whether a file has records after one seqno and up to another."""


class _TimelineBuilder:
    """The timeline up to the last event that was applied.

    Attributes:
        low: the seqno up to which records are in an epoch.
        steps: ALTER TABLE steps since the last epoch.
        created: a statement in the log made the table.
    """

    def __init__(self, state: TableState) -> None:
        self.state: Lifecycle = state.state
        self._initial_state = state.state
        self.low = state.applied
        self.steps: list[Step] = []
        self.epochs: list[Epoch] = []
        self.first_epoch = 0
        self.copy_source: CopySource | None = None
        self.created = False
        if state.schema is not None:
            origins = {column.name: ColumnOrigin(column.name) for column in state.schema.columns}
            self.epochs.append(Epoch(state.schema, origins, state.applied, state.applied))

    @property
    def has_changes(self) -> bool:
        """Whether records or events were added."""
        return bool(self.steps or self.epochs[1:] or self.first_epoch or self.state != self._initial_state)

    @property
    def schema(self) -> TableSchema | None:
        """The schema of the last epoch."""
        return self.epochs[-1].schema if self.epochs else None

    def empty(self) -> None:
        """Discard all rows so far."""
        self.first_epoch, self.copy_source = len(self.epochs), None

    def append(self, evolution: Evolution, through: int, files: tuple[StagedFile, ...]) -> None:
        self.epochs.append(Epoch(evolution.schema, evolution.origins, self.low, through, files))
        self.steps = []


def build_timeline(
    name: TableName,
    state: TableState,
    target: int,
    manifests: Sequence[Manifest],
    events: Iterable[TableEvent],
    find_copy_source: FindCopySource,
    has_records: HasRecords,
    *,
    stop_at_events: bool = False,
    pass_renames: bool = False,
) -> Timeline:
    """Return the timeline of a table from its applied position to `target`.

    The timeline ends earlier, right before a statement that renames this table or gives its name to another table.

    Args:
        name: the table.
        state: its state at its applied position.
        target: the seqno that the merge must reach.
        manifests: the contiguous intervals from `state.applied` to `target`.
        events: the DDL events of the table in these intervals, in log order.
        find_copy_source: see FindCopySource.
        has_records: see HasRecords.
        stop_at_events: end the timeline before each event. A column that is added and later dropped is then seen.
        pass_renames: continue where the table is renamed, since no other table takes its rows.

    Raises:
        UnsupportedError: the log does not hold the values of rows or columns.
    """
    files = _table_files(name, manifests, state.applied)
    builder = _TimelineBuilder(state)
    for event in events:
        if isinstance(event, RenamedFrom) and event.keeps and builder.state != "gone":
            continue  # the server refuses to rename a table to the name of another
        before = event.seqno - 1  # rows of CREATE TABLE ... SELECT have the seqno of the statement
        _add_records(builder, name, files, before, manifests, has_records)
        # RENAME TABLE takes another table's rows as they were right before it. So each table is merged up to there
        # first. A statement can give several events. The timeline can end only before the first of them.
        separate = stop_at_events and builder.schema is not None and before > state.applied
        renamed = isinstance(event, RenamedFrom) or (_gives_rows_away(event) and not pass_renames)
        if builder.has_changes and (renamed or separate):
            return _finish(builder, before)
        builder.low = before
        _apply_event(builder, event, find_copy_source)
    _add_records(builder, name, files, target, manifests, has_records)
    return _finish(builder, target)


def _gives_rows_away(event: TableEvent) -> bool:
    """Return whether another table takes the rows of this one."""
    return isinstance(event, TableRemoved) and event.renamed


def _finish(builder: _TimelineBuilder, target: int) -> Timeline:
    _close(builder, target)
    return Timeline(tuple(builder.epochs), builder.first_epoch, builder.copy_source, builder.state, target)


def _apply_event(builder: _TimelineBuilder, event: TableEvent, find_copy_source: FindCopySource) -> None:
    """Add an event that comes after all records so far."""
    if isinstance(event, TableAltered):
        if builder.state and event.unlogged_rows:
            raise rows_not_logged_error(event)
        builder.steps.append(event.step)
    elif isinstance(event, TableEmptied):
        _close(builder, event.seqno)
        builder.empty()
    elif isinstance(event, TableRemoved):
        _close(builder, event.seqno)
        builder.state = "gone"
    elif isinstance(event, TableCreated):
        if event.certain or builder.state == "gone":
            builder.empty()
            builder.state, builder.steps, builder.created = "fresh", [], True
    elif isinstance(event, RenamedFrom):
        _take_rows(builder, event, find_copy_source(event))


def _close(builder: _TimelineBuilder, seqno: int) -> None:
    """Derive the schema from the statements since the last epoch, if no record after them shows it."""
    if builder.steps and builder.state == "" and builder.schema is not None:
        builder.append(evolve(builder.schema, builder.steps, None), seqno, ())
    builder.steps = []


def _take_rows(builder: _TimelineBuilder, event: RenamedFrom, copied: CopySource | Literal["fresh", "gone"]) -> None:
    """Replace the rows and columns by those of the renamed table."""
    if copied == "gone":  # the statement can only have moved this table away
        _close(builder, event.seqno)
        builder.state = "gone"
        return
    builder.empty()
    if copied == "fresh":
        builder.state, builder.steps = "fresh", []
        return
    taken = replace(copied.schema, name=event.name)
    builder.append(Evolution(taken, match_columns(builder.schema, taken)), event.seqno, ())
    builder.steps = list(event.steps)
    builder.state, builder.copy_source = "", copied


def _add_records(
    builder: _TimelineBuilder,
    name: TableName,
    files: Sequence[StagedFile],
    last_seqno: int,
    manifests: Sequence[Manifest],
    has_records: HasRecords,
) -> None:
    """Add an epoch for the records after the last event up to `last_seqno`, which have one schema."""
    low = builder.low
    if last_seqno <= low:
        return  # the range is empty: a file that begins before it and ends after it has no record in it
    overlapping = [file for file in files if file.min_seqno <= last_seqno and file.max_seqno > low]
    certain = [f for f in overlapping if low < f.min_seqno <= last_seqno or low < f.max_seqno <= last_seqno]
    if builder.state == "fresh" and not certain:  # a record decides the columns of the table: look into the files
        certain = overlapping = [file for file in overlapping if has_records(file, low, last_seqno)]
    ids = dict.fromkeys(file.schema_id for file in certain or overlapping)
    schemas = [_staged_schema(manifests, schema_id) for schema_id in ids]
    evolution = _evolve_to_staged(builder, name, schemas) if certain else _evolve_if_possible(builder, schemas)
    if evolution is not None:
        chosen = evolution.schema.schema_id
        builder.append(evolution, last_seqno, tuple(file for file in overlapping if file.schema_id == chosen))
        builder.state = ""


def _evolve_to_staged(builder: _TimelineBuilder, name: TableName, schemas: Sequence[TableSchema]) -> Evolution:
    """Return the evolution to the schema of records that are certainly in the range.

    Raises:
        UnsupportedError: the statements in the log do not lead to that schema, or see check_key_labels.
    """
    if builder.state == "gone" or len(schemas) > 1:
        gone = "the log has changes of rows in a table that was dropped or renamed away"
        raise UnsupportedError(
            gone if builder.state == "gone" else "the table has records of two schemas with no statement between them",
            why="a statement is missing in the log, for example because a session set sql_log_bin=0",
            hint=name.load_again,
            table=name,
        )
    check_key_labels(schemas[0])
    if builder.state == "fresh" or builder.schema is None:
        if builder.created:
            _check_hidden_columns(name, schemas[0])
        return Evolution(schemas[0], match_columns(builder.schema, schemas[0]))
    return evolve(builder.schema, builder.steps, schemas[0])


def _check_hidden_columns(name: TableName, schema: TableSchema) -> None:
    """Check the columns of a table that no load has checked.

    Raises:
        UnsupportedError: some have the names of hidden columns. The table may have a unique key of unlimited length, or
            system versioning, which CREATE TABLE LIKE copies.
    """
    shape = tuple((column.name, column.type) for column in schema.columns[-2:])
    hidden = [column.name for column in schema.columns if _HASH.fullmatch(column.name)]
    if hidden or shape == _PERIOD:
        raise UnsupportedError(
            "the table has columns that MariaDB may hide, which its log does not tell",
            why=f"{', '.join(hidden or dict(_PERIOD))}: of a unique key of unlimited length, or of system versioning",
            hint=name.load_again,
            table=name,
        )


def _evolve_if_possible(builder: _TimelineBuilder, schemas: Sequence[TableSchema]) -> Evolution | None:
    """Return the evolution to the schema that fits, among files that begin before the range and end after it.

    Return None if no schema fits: then these files have no records in the range. If a file has some nevertheless,
    reading it fails.
    """
    if builder.state == "gone":
        return None
    for schema in schemas:
        try:
            return _evolve_to_staged(builder, schema.name, [schema])
        except UnsupportedError:
            continue
    return None


def match_columns(old: TableSchema | None, new: TableSchema) -> dict[str, Origin]:
    """Return the origins of the columns of a re-created table.

    A column keeps the old column of its name if Iceberg can widen one of the two types to the other.
    """
    before = {column.name: column for column in old.columns} if old else {}
    return {
        column.name: ColumnOrigin(column.name)
        if column.name in before and widened_type(spark_type(before[column.name]), spark_type(column))
        else ConstantOrigin(None)
        for column in new.columns
    }


def compose_origins(epochs: Sequence[Epoch]) -> dict[str, Origin]:
    """Return, by column of the last epoch, where rows of the first epoch get its value from."""
    origins: dict[str, Origin] = {column.name: ColumnOrigin(column.name) for column in epochs[-1].schema.columns}
    for epoch in reversed(epochs[1:]):
        origins = {
            name: epoch.origins[origin.old] if isinstance(origin, ColumnOrigin) else origin
            for name, origin in origins.items()
        }
    return origins


def _table_files(name: TableName, manifests: Sequence[Manifest], applied: int) -> list[StagedFile]:
    found = (file for manifest in manifests for file in manifest.files_of(name))
    return [file for file in found if file.rows and file.max_seqno > applied]


def _staged_schema(manifests: Sequence[Manifest], schema_id: str) -> TableSchema:
    return next(manifest.schema_of(schema_id) for manifest in manifests if schema_id in manifest.schemas)
