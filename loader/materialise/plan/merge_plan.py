"""The plan of a merge: the staged intervals that a table needs, and the stages that apply them. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from loader.errors import LOAD_ALL_AGAIN, GapError
from loader.materialise.plan.column_aliases import Aliases, assign_aliases
from loader.materialise.plan.column_names import column_name
from loader.materialise.plan.key_texts import KeyTexts, ambiguous_key_columns
from loader.materialise.plan.table_layout import Layout
from loader.materialise.plan.timeline import Epoch, Lifecycle, Timeline, compose_origins
from loader.materialise.rules import TableRule
from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import Column, TableName, TableSchema
from loader.schema.evolution import ColumnOrigin, ConstantOrigin, Origin
from loader.staging.documents import Manifest, StagedFile
from loader.types.warehouse import form


@dataclass(frozen=True)
class RecordRange:
    """The records with `after_seqno` < seqno <= `last_seqno`.

    Attributes:
        origins: by column of the table, where the records hold its value.
    """

    after_seqno: int
    last_seqno: int
    origins: Mapping[str, Origin]


@dataclass(frozen=True)
class FileGroup:
    """Files of one schema, and the ranges of their records that count."""

    schema: TableSchema
    files: tuple[StagedFile, ...]
    ranges: tuple[RecordRange, ...]


@dataclass(frozen=True)
class Work:
    """Staged records that are collapsed together. They have one key, and they are converted to the columns of `schema`.

    Attributes:
        applied, target: seqnos. Records up to `applied` are in the table, and records after `target` do not count. The
            files may hold records of both kinds.
        position: the position of `target`.
        aliases: by column, its name in the table during the merge.
        logs: what converts seqnos to positions. For each log of the files: the seqno where its part begins, a position
            in it, and the shift of its generation.
        rule: the table's rule.
    """

    name: TableName
    schema: TableSchema
    applied: int
    target: int
    position: str
    file_groups: tuple[FileGroup, ...]
    aliases: Mapping[str, str]
    logs: tuple[tuple[int, Position, int], ...]
    rule: TableRule

    @property
    def layout(self) -> Layout:
        """The columns of the warehouse's table."""
        return Layout(self.schema, self.rule, self.aliases)

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """The files of all groups."""
        return tuple(file for group in self.file_groups for file in group.files)

    @property
    def rows(self) -> int:
        """The number of records in all files."""
        return sum(file.rows for file in self.files)

    @property
    def ops(self) -> dict[str, int]:
        """The number of records in all files, by op."""
        return {
            "I": sum(file.inserts for file in self.files),
            "U": sum(file.updates for file in self.files),
            "D": sum(file.deletes for file in self.files),
        }

    def position_of(self, seqno: int) -> Position:
        """Return the end of the transaction with this seqno."""
        return _position(self.logs, seqno)


@dataclass(frozen=True)
class EmptyTable:
    """Delete all rows of the table."""


@dataclass(frozen=True)
class CopyRows:
    """Copy the rows that another table, with this schema, had in a snapshot.

    Attributes:
        aliases: by column, its name in this table during the merge.
    """

    schema: TableSchema
    snapshot: int
    aliases: Mapping[str, str]


@dataclass(frozen=True)
class FillColumns:
    """Set columns to a constant in all rows.

    Attributes:
        schema: the columns of the table.
        aliases: by column, its name in the table during the merge.
        constants: by column, the constant as staged text.
    """

    schema: TableSchema
    aliases: Mapping[str, str]
    constants: Mapping[str, str]


@dataclass(frozen=True)
class CheckRows:
    """Verify that no row has a value that the server changed without logging it, or an ambiguous text in its key.

    Columns are given by their names in the table.

    Attributes:
        longest: by column, a number of characters. When the column became shorter, the server removed trailing
            whitespace. So no longer text may end with whitespace.
        numbered: columns that became AUTO_INCREMENT. The server replaced 0 and NULL by numbers.
        dated: TIMESTAMP columns that became NOT NULL. The server replaced NULL by the time of the statement.
        undecodable: text columns of a key. A text that may be the hex of invalid bytes may stand for two keys.
    """

    longest: Mapping[str, int]
    numbered: tuple[str, ...]
    dated: tuple[str, ...]
    undecodable: tuple[str, ...] = ()


Stage = EmptyTable | CopyRows | FillColumns | CheckRows | Work


@dataclass(frozen=True)
class Merge:
    """The stages that bring a table to `target`, in order. Columns change before the first and after the last stage.

    Attributes:
        schema: the schema of the table after the merge; None while it is unknown.
        aliases: by column, its name in the table until the merge is published.
        state: the lifecycle of the table after the merge.
        hexed: see KeyTexts.
    """

    name: TableName
    schema: TableSchema | None
    aliases: Mapping[str, str]
    stages: tuple[Stage, ...]
    state: Lifecycle
    target: int
    position: str
    rule: TableRule
    hexed: bool = False

    @property
    def layout(self) -> Layout | None:
        """The columns of the warehouse table after the merge, by their aliases."""
        return Layout(self.schema, self.rule, self.aliases) if self.schema else None

    @property
    def keeps_columns(self) -> bool:
        """Whether no column is added or renamed."""
        return all(column_name(column, self.rule) == alias for column, alias in self.aliases.items())

    @property
    def replaces_rows(self) -> bool:
        """Whether no row stays that the table had before the merge."""
        return self.rule.mode == "mirror" and any(isinstance(one, EmptyTable | CopyRows) for one in self.stages)

    @property
    def works(self) -> tuple[Work, ...]:
        """The stages that read records."""
        return tuple(stage for stage in self.stages if isinstance(stage, Work))

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """All files that the merge reads."""
        return tuple(file for work in self.works for file in work.files)


def _position(logs: Sequence[tuple[int, Position, int]], seqno: int) -> Position:
    known = [log for log in logs if log[0] <= seqno] or [logs[0]]
    _, origin, shift = known[-1]
    return Position(origin.basename, seqno // SEQNO_UNIT - shift, seqno % SEQNO_UNIT)


def log_origin(manifest: Manifest) -> tuple[int, Position, int]:
    """Return the entry of a manifest for Work.logs."""
    origin = Position.parse(manifest.start)
    return manifest.start_seqno, origin, manifest.start_seqno // SEQNO_UNIT - origin.lognum


def find_covering_intervals(
    manifest_at: Callable[[int], Manifest | None],
    starts: Sequence[int],
    applied: int,
    target: int,
    joins: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Manifest, ...]:
    """Return the contiguous intervals from `applied` to `target`, which is the stop of an interval.

    Args:
        manifest_at: reads the manifest of the interval with a start seqno. It returns None if it is not extracted.
        starts: the start seqnos of all intervals, ascending.
        applied: the applied position of a table, as seqno.
        target: the seqno that the table must reach.
        joins: by start seqno of a generation, the seqno up to which the generation before it counts.

    Raises:
        GapError: an interval is missing.
    """
    run: list[Manifest] = []
    at = applied
    begins = [_predecessor_stop(start, joins) for start in starts]
    place = bisect_right(begins, applied) - 1
    while at < target:
        manifest = manifest_at(starts[place]) if 0 <= place < len(starts) else None
        # Only the first interval may begin before `applied`: its early records are filtered.
        fits = manifest is not None and manifest.stop_seqno > at and (begins[place] == at or not run)
        if manifest is None or not fits:
            start = starts[place] if 0 <= place < len(starts) and begins[place] <= at else at
            raise _gap_error(at, begins, target, start)
        run.append(manifest)
        at = manifest.stop_seqno
        place += 1
    return tuple(run)


def _predecessor_stop(start: int, joins: Mapping[int, int]) -> int:
    """Return the seqno that precedes an interval: the stop of the newest generation before it that has intervals."""
    while start in joins:  # a generation without intervals stops at its own start
        start = joins[start]
    return start


def _gap_error(at: int, starts: Sequence[int], target: int, interval: int) -> GapError:
    after = [start for start in starts if start > at]
    return GapError(
        "an interval is missing between the applied position of the table and the target of the merge",
        why=f"no extracted interval covers [{at}, {after[0] if after else target}) of the log",
        hint=f"while the server has that log: loader extract --interval {interval}; otherwise {LOAD_ALL_AGAIN}",
        seqno=at,
    )


def plan_stages(
    name: TableName,
    timeline: Timeline,
    manifests: Sequence[Manifest],
    rule: TableRule,
    *,
    new: bool,
    texts: KeyTexts = KeyTexts(),  # noqa: B008
) -> Merge:
    """Return the merge that a timeline requires.

    Args:
        name: the table.
        timeline: its epochs up to the target.
        manifests: the intervals of the timeline.
        rule: the table's rule.
        new: the table is not in the warehouse.
        texts: how the records were staged.
    """
    aliases = assign_aliases(timeline.epochs, rule, new=new)
    logs = tuple(map(log_origin, manifests))
    stages: list[Stage] = []
    emptied = timeline.first_epoch
    # Only a mirror drops the records of rows that were deleted again. A history and soft_delete apply them first.
    current = emptied if rule.mode == "mirror" or timeline.copy_source else 0  # the epoch whose columns the rows have
    if timeline.copy_source:
        stages.append(_copy_stage(timeline, aliases[current]))
    elif current:
        stages.append(EmptyTable())
    has_rows = not new or bool(timeline.copy_source)
    if texts.changed and has_rows and timeline.epochs and (timeline.copy_source or not current):
        stages += _key_stages(timeline.epochs[current].schema, aliases[current])
    for group in _group_epochs(timeline.epochs, aliases, (current, emptied)):
        if current < emptied <= group[0]:
            stages.append(EmptyTable())
            emptied = 0
        first, last = group[0], group[-1]
        if has_rows and first > current:
            stages += _check_stages(timeline.epochs[first], aliases[first - 1])
        if not any(timeline.epochs[number].files for number in group):
            continue
        if has_rows and last > current:
            stages += _fill_stages(timeline.epochs[current : last + 1], aliases[last])
        stages.append(_work_stage(name, timeline.epochs[first : last + 1], aliases[last], logs, rule))
        current, has_rows = last, True
    if current < emptied:
        stages.append(EmptyTable())
    if has_rows and current < len(timeline.epochs) - 1:
        stages += _fill_stages(timeline.epochs[current:], aliases[-1])
    return Merge(
        name=name,
        schema=timeline.epochs[-1].schema if timeline.epochs else None,
        aliases=aliases[-1] if aliases else {},
        stages=tuple(stages),
        state=timeline.state,
        target=timeline.target,
        position=str(_position(logs, timeline.target)),
        rule=rule,
        hexed=texts.hexed,
    )


def _key_stages(schema: TableSchema, aliases: Aliases) -> list[Stage]:
    """Return the stage that verifies that no key of the table has a text with two meanings."""
    columns = tuple(aliases[name] for name in ambiguous_key_columns(schema))
    return [CheckRows({}, (), (), columns)] if columns else []


def _group_epochs(epochs: Sequence[Epoch], aliases: Sequence[Aliases], starts: tuple[int, int]) -> list[range]:
    """Group the epochs that count, so that the records of each group can be collapsed together.

    Inside a group, keys and numbers are comparable, and no row of the table has to be checked. Epochs before the first
    of `starts` do not count. A group begins at the second of `starts`.
    """
    cuts = [
        number
        for number in range(starts[0] + 1, len(epochs))
        if number == starts[1]
        or _check_stages(epochs[number], aliases[number - 1])
        or not _has_same_key(epochs[number - 1], epochs[number])
        or _has_float_as_double(epochs[number - 1], epochs[number])
    ]
    return [range(first, end) for first, end in pairwise([starts[0], *cuts, len(epochs)]) if first < end]


def _has_float_as_double(before: Epoch, after: Epoch) -> bool:
    """Return whether a FLOAT becomes a DOUBLE: the same text, such as 0.1, is another number then."""
    return any(
        isinstance(origin := after.origins[column.name], ColumnOrigin)
        and (before.schema.column(origin.old).type, column.type) == ("float", "double")
        for column in after.schema.columns
    )


def _has_same_key(before: Epoch, after: Epoch) -> bool:
    """Return whether keys with equal staged texts are equal in both epochs."""
    old = [before.schema.column(name) for name in before.schema.key]
    origins = [after.origins[name] for name in after.schema.key]
    kept = [origin.old if isinstance(origin, ColumnOrigin) else None for origin in origins]
    new = [after.schema.column(name) for name in after.schema.key]
    same = kept == [column.name for column in old]
    pairs = zip(old, new, strict=True) if same else ()
    return same and all(form(a) is form(b) and _text_format(a) == _text_format(b) for a, b in pairs)


def _text_format(column: Column) -> tuple[str, int]:
    """Return what decides the staged text of a value, among columns of the same form."""
    exact = column.type in {"float", "double", "decimal", "datetime", "timestamp", "time"}
    return (column.type, column.scale or column.size * (column.type != "decimal")) if exact else ("", 0)


def _fill_stages(epochs: Sequence[Epoch], aliases: Aliases) -> list[Stage]:
    """Return the stage that sets, in rows of the first epoch, the columns that were added up to the last epoch."""
    constants = {
        name: origin.text
        for name, origin in compose_origins(epochs).items()
        if isinstance(origin, ConstantOrigin) and origin.text is not None
    }
    return [FillColumns(epochs[-1].schema, aliases, constants)] if constants else []


def _check_stages(epoch: Epoch, previous: Aliases) -> list[Stage]:
    """Return the stage that verifies that the statement before the epoch changed no value of existing rows."""
    kept = [origin for origin in epoch.origins.values() if isinstance(origin, ColumnOrigin)]
    longest = {previous[origin.old]: origin.longest for origin in kept if origin.longest is not None}
    numbered = tuple(previous[origin.old] for origin in kept if origin.numbered)
    dated = tuple(previous[origin.old] for origin in kept if origin.dated)
    joined = tuple(previous[origin.old] for origin in kept if origin.joins_key)
    return [CheckRows(longest, numbered, dated, joined)] if longest or numbered or dated or joined else []


def _copy_stage(timeline: Timeline, aliases: Aliases) -> Stage:
    source = timeline.copy_source
    if source is None or source.snapshot is None:
        return EmptyTable()
    return CopyRows(source.schema, source.snapshot, aliases)


def _work_stage(
    name: TableName,
    epochs: Sequence[Epoch],
    aliases: Aliases,
    logs: tuple[tuple[int, Position, int], ...],
    rule: TableRule,
) -> Work:
    last = epochs[-1]
    ranges: dict[str, list[RecordRange]] = {}
    for number, epoch in enumerate(epochs):
        if epoch.files:
            counted = RecordRange(epoch.after_seqno, epoch.last_seqno, compose_origins(epochs[number:]))
            ranges.setdefault(epoch.schema.schema_id, []).append(counted)
    groups = []
    for schema_id, its_ranges in ranges.items():
        files = {file.key: file for epoch in epochs for file in epoch.files if file.schema_id == schema_id}
        schema = next(epoch.schema for epoch in epochs if epoch.schema.schema_id == schema_id)
        groups.append(FileGroup(schema, tuple(files.values()), tuple(its_ranges)))
    applied = min(counted.after_seqno for group in groups for counted in group.ranges)
    return Work(
        name=name,
        schema=last.schema,
        applied=applied,
        target=last.last_seqno,
        position=str(_position(logs, last.last_seqno)),
        file_groups=tuple(groups),
        aliases=aliases,
        logs=logs,
        rule=rule,
    )
