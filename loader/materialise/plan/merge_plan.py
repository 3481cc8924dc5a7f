"""Which staged intervals a table still needs, and what is to be done to it, step by step. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from loader.errors import GapError
from loader.materialise.plan.column_aliases import Aliases, assign_aliases
from loader.materialise.plan.table_layout import Layout
from loader.materialise.plan.timeline import Epoch, Lifecycle, Timeline, compose_origins
from loader.materialise.rules import TableRule
from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import Column, TableName, TableSchema
from loader.schema.evolution import ColumnOrigin, ConstantOrigin, Origin
from loader.staging.documents import Manifest, StagedFile
from loader.typemap import form


@dataclass(frozen=True)
class RecordRange:
    """The records of a source with `after` < seqno <= `through`, and where each column of the table is in them."""

    after: int
    through: int
    origins: Mapping[str, Origin]


@dataclass(frozen=True)
class FileGroup:
    """Files of one schema, and which of their records count."""

    schema: TableSchema
    files: tuple[StagedFile, ...]
    windows: tuple[RecordRange, ...]


@dataclass(frozen=True)
class Work:
    """Records that are collapsed together: they have one key, and their columns become those of `schema`.

    Attributes:
        applied, target: records up to `applied` are in the table, those after `target` do not count; files may hold
            some of both.
        position: of `target`.
        names: by column its name in the table meanwhile.
        logs: to turn seqnos into positions: of each log that files come from the seqno where its part begins, a
            position in it, and the shift of its generation.
        rule: what becomes of the rows.
    """

    name: TableName
    schema: TableSchema
    applied: int
    target: int
    position: str
    sources: tuple[FileGroup, ...]
    names: Mapping[str, str]
    logs: tuple[tuple[int, Position, int], ...]
    rule: TableRule

    @property
    def layout(self) -> Layout:
        """The columns of the warehouse's table."""
        return Layout(self.schema, self.rule, self.names)

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """Of all sources."""
        return tuple(file for source in self.sources for file in source.files)

    @property
    def rows(self) -> int:
        """Records in all files."""
        return sum(file.rows for file in self.files)

    @property
    def ops(self) -> dict[str, int]:
        """Records in all files, by op."""
        return {
            "I": sum(file.inserts for file in self.files),
            "U": sum(file.updates for file in self.files),
            "D": sum(file.deletes for file in self.files),
        }

    def position_of(self, seqno: int) -> Position:
        """The end of the transaction with that seqno."""
        return _position(self.logs, seqno)


@dataclass(frozen=True)
class EmptyTable:
    """The table loses its rows."""


@dataclass(frozen=True)
class CopyRows:
    """The table takes the rows that another one, of this schema, had in a snapshot; `names`: of its columns here."""

    schema: TableSchema
    snapshot: int
    names: Mapping[str, str]


@dataclass(frozen=True)
class FillColumns:
    """Columns of all rows of this schema get a constant as staged text; `names`: of the columns in the table."""

    schema: TableSchema
    names: Mapping[str, str]
    constants: Mapping[str, str]


@dataclass(frozen=True)
class CheckRows:
    """What no row may have, since the server changed it without a word: columns by their names in the table.

    Attributes:
        longest: a text of more characters than this that ends with a space: when the column became shorter, the server
            cut such spaces off.
        numbered: 0 or NULL: when the column became AUTO_INCREMENT, the server put a number in its place.
        dated: NULL: when a TIMESTAMP became NOT NULL, the server put the time of the statement in its place.
    """

    longest: Mapping[str, int]
    numbered: tuple[str, ...]
    dated: tuple[str, ...]


Stage = EmptyTable | CopyRows | FillColumns | CheckRows | Work


@dataclass(frozen=True)
class Merge:
    """What brings a table to `target`: stages in order, between a change of its columns before and one after.

    Attributes:
        schema: of the table afterwards; None where nothing told it yet.
        names: by column its name in the table until the merge is published.
    """

    name: TableName
    schema: TableSchema | None
    names: Mapping[str, str]
    stages: tuple[Stage, ...]
    state: Lifecycle
    target: int
    position: str
    rule: TableRule

    @property
    def layout(self) -> Layout | None:
        """The columns of the warehouse's table afterwards, by their names until the merge is published."""
        return Layout(self.schema, self.rule, self.names) if self.schema else None

    @property
    def keeps_columns(self) -> bool:
        """Whether each column of the table afterwards is the one that has its name now."""
        return all(column == meanwhile for column, meanwhile in self.names.items())

    @property
    def works(self) -> tuple[Work, ...]:
        """The stages that read records."""
        return tuple(stage for stage in self.stages if isinstance(stage, Work))

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """All files that are read."""
        return tuple(file for work in self.works for file in work.files)


def _position(logs: Sequence[tuple[int, Position, int]], seqno: int) -> Position:
    known = [log for log in logs if log[0] <= seqno] or [logs[0]]
    _, origin, shift = known[-1]
    return Position(origin.basename, seqno // SEQNO_UNIT - shift, seqno % SEQNO_UNIT)


def log_origin(manifest: Manifest) -> tuple[int, Position, int]:
    """See Work.logs."""
    origin = Position.parse(manifest.start)
    return manifest.start_seqno, origin, manifest.start_seqno // SEQNO_UNIT - origin.lognum


def find_covering_intervals(
    manifest_at: Callable[[int], Manifest | None],
    starts: Sequence[int],
    applied: int,
    target: int,
    joins: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Manifest, ...]:
    """The unbroken run of intervals that takes a table from `applied` to `target`, the stop of one of them.

    `manifest_at` reads the manifest of the interval with that start, None when it is not extracted; `starts` are those
    of all intervals, ascending. `joins`: by the seqno at which a generation that follows on another one starts, the
    seqno up to which that other one counts.

    Raises:
        GapError: naming the hole.
    """
    run: list[Manifest] = []
    at = applied
    begins = [_predecessor_stop(start, joins) for start in starts]
    place = bisect_right(begins, applied) - 1
    while at < target:
        manifest = manifest_at(starts[place]) if 0 <= place < len(starts) else None
        # Only the first interval may begin before the place that is to be continued: its early records are filtered.
        fits = manifest is not None and manifest.stop_seqno > at and (begins[place] == at or not run)
        if manifest is None or not fits:
            raise _gap_error(at, begins, target)
        run.append(manifest)
        at = manifest.stop_seqno
        place += 1
    return tuple(run)


def _predecessor_stop(start: int, joins: Mapping[int, int]) -> int:
    """Return the seqno that an interval goes on from: the stop of the newest log before it that has intervals."""
    while start in joins:  # also where a generation has no interval, and its own start is where it stops
        start = joins[start]
    return start


def _gap_error(at: int, starts: Sequence[int], target: int) -> GapError:
    after = [start for start in starts if start > at]
    return GapError(
        "an interval is missing between what the table has and what is to be applied",
        why=f"nothing extracted covers [{at}, {after[0] if after else target}) of the log",
        hint="extract the missing interval while the server still has its log, else load the table again",
        seqno=at,
    )


def plan_stages(
    name: TableName, timeline: Timeline, manifests: Sequence[Manifest], rule: TableRule, *, new: bool
) -> Merge:
    """The stages that a timeline means; `new`: the table is not in the warehouse."""
    names = assign_aliases(timeline.epochs, new=new)
    logs = tuple(map(log_origin, manifests))
    position = str(_position(logs, timeline.target))
    stages: list[Stage] = []
    emptied = timeline.rows
    # Only a mirror forgets rows that came and went; at: the epoch whose columns the table's rows have.
    at = emptied if rule.mode == "mirror" or timeline.copied else 0
    if timeline.copied:
        stages.append(_copy_stage(timeline, names[at]))
    elif at:
        stages.append(EmptyTable())
    there = not new or bool(timeline.copied)  # rows, before the next stage
    for group in _group_epochs(timeline.epochs, names, (at, emptied)):
        if at < emptied <= group[0]:
            stages.append(EmptyTable())
            emptied = 0
        first = timeline.epochs[group[0]]
        if there and group[0] > at:
            stages += _check_stages(first, names[group[0] - 1])
        if not any(timeline.epochs[place].files for place in group):
            continue
        last = group[-1]
        if there and last > at:
            stages += _fill_stages(timeline.epochs[at : last + 1], names[last])
        epochs = timeline.epochs[group[0] : last + 1]
        stages.append(_work_stage(name, epochs, names[last], position, logs, rule))
        at, there = last, True
    if at < emptied:
        stages.append(EmptyTable())
    if there and at < len(timeline.epochs) - 1:
        stages += _fill_stages(timeline.epochs[at:], names[-1])
    schema = timeline.epochs[-1].schema if timeline.epochs else None
    return Merge(
        name=name,
        schema=schema,
        names=names[-1] if names else {},
        stages=tuple(stages),
        state=timeline.state,
        target=timeline.target,
        position=position,
        rule=rule,
    )


def _group_epochs(epochs: Sequence[Epoch], names: Sequence[Aliases], starts: tuple[int, int]) -> list[range]:
    """The epochs that count, in runs in which keys can be compared and no value may have to be looked at.

    Those before the first of `starts` do not; with the second a run begins.
    """
    cuts = [
        place
        for place in range(starts[0] + 1, len(epochs))
        if place == starts[1]
        or _check_stages(epochs[place], names[place - 1])
        or not _has_same_key(epochs[place - 1], epochs[place])
    ]
    return [range(first, end) for first, end in pairwise([starts[0], *cuts, len(epochs)]) if first < end]


def _has_same_key(before: Epoch, after: Epoch) -> bool:
    """Whether equal staged texts are equal keys in both."""
    old = [before.schema.column(name) for name in before.schema.key]
    origins = [after.origins[name] for name in after.schema.key]
    kept = [origin.old if isinstance(origin, ColumnOrigin) else None for origin in origins]
    new = [after.schema.column(name) for name in after.schema.key]
    same = kept == [column.name for column in old]
    return same and all(
        form(a) is form(b) and _text_format(a) == _text_format(b) for a, b in zip(old, new, strict=True)
    )


def _text_format(column: Column) -> tuple[str, int]:
    """Two columns with the same of this, and of the same form, have the same text for a value."""
    exact = column.type in {"float", "double", "decimal", "datetime", "timestamp", "time"}
    return (column.type, column.scale or column.size * (column.type != "decimal")) if exact else ("", 0)


def _fill_stages(epochs: Sequence[Epoch], names: Aliases) -> list[Stage]:
    """For rows of the first epoch, what columns that were added until the last one have in them."""
    constants = {
        name: origin.text
        for name, origin in compose_origins(epochs).items()
        if isinstance(origin, ConstantOrigin) and origin.text is not None
    }
    return [FillColumns(epochs[-1].schema, names, constants)] if constants else []


def _check_stages(epoch: Epoch, before: Aliases) -> list[Stage]:
    """What must be true of rows of the epoch before, so that they did not change."""
    kept = [origin for origin in epoch.origins.values() if isinstance(origin, ColumnOrigin)]
    longest = {before[origin.old]: origin.longest for origin in kept if origin.longest is not None}
    numbered = tuple(before[origin.old] for origin in kept if origin.numbered)
    dated = tuple(before[origin.old] for origin in kept if origin.dated)
    return [CheckRows(longest, numbered, dated)] if longest or numbered or dated else []


def _copy_stage(timeline: Timeline, names: Aliases) -> Stage:
    copied = timeline.copied
    if copied is None or copied.snapshot is None:
        return EmptyTable()
    return CopyRows(copied.schema, copied.snapshot, names)


def _work_stage(
    name: TableName,
    epochs: Sequence[Epoch],
    names: Aliases,
    position: str,
    logs: tuple[tuple[int, Position, int], ...],
    rule: TableRule,
) -> Work:
    last = epochs[-1]
    windows: dict[str, list[RecordRange]] = {}
    for place, epoch in enumerate(epochs):
        if epoch.files:
            window = RecordRange(epoch.after, epoch.through, compose_origins(epochs[place:]))
            windows.setdefault(epoch.schema.schema_id, []).append(window)
    sources = []
    for schema_id, found in windows.items():
        files = {file.key: file for epoch in epochs for file in epoch.files if file.schema_id == schema_id}
        schema = next(epoch.schema for epoch in epochs if epoch.schema.schema_id == schema_id)
        sources.append(FileGroup(schema, tuple(files.values()), tuple(found)))
    applied = min(window.after for source in sources for window in source.windows)
    return Work(name, last.schema, applied, last.through, position, tuple(sources), names, logs, rule)
