"""Which staged intervals a table still needs, and whether they may be merged into it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from loader.errors import GapError, UnsupportedError
from loader.materialise.layout import Layout
from loader.materialise.rules import DEFAULT, TableRule
from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import TableName, TableSchema
from loader.schema.changes import Altered, ChangeIndexes, Created
from loader.schema.reading import table_changes
from loader.staging.documents import Barrier, Manifest, StagedFile


@dataclass(frozen=True)
class Work:
    """What one merge does to one table.

    Attributes:
        applied: records up to this seqno are in the table; files may hold some of them again.
        target, position: what the table has applied afterwards.
        logs: to turn seqnos into positions: of each log that files come from the seqno where its part begins, a
            position in it, and the shift of its generation.
        rule: what becomes of the rows.
    """

    name: TableName
    schema: TableSchema
    applied: int
    target: int
    position: str
    files: tuple[StagedFile, ...]
    logs: tuple[tuple[int, Position, int], ...]
    rule: TableRule = DEFAULT

    @property
    def layout(self) -> Layout:
        """The columns of the warehouse's table."""
        return Layout(self.schema, self.rule)

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
        known = [log for log in self.logs if log[0] <= seqno] or [self.logs[0]]
        _, origin, shift = known[-1]
        return Position(origin.basename, seqno // SEQNO_UNIT - shift, seqno % SEQNO_UNIT)


def log_of(manifest: Manifest) -> tuple[int, Position, int]:
    """See Work.logs."""
    origin = Position.parse(manifest.start)
    return manifest.start_seqno, origin, manifest.start_seqno // SEQNO_UNIT - origin.lognum


def covering(
    manifest_at: Callable[[int], Manifest | None],
    starts: Sequence[int],
    applied: int,
    target: int,
    joins: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Manifest, ...]:
    """The unbroken run of intervals that takes a table from `applied` to `target`, the stop of one of them.

    `manifest_at` reads the manifest of the interval with that start, None when it is not extracted; `starts` are those
    of all intervals, ascending. `joins`: of the first interval of a generation that follows on another one, the seqno
    up to which that one counts.

    Raises:
        GapError: naming the hole.
    """
    run: list[Manifest] = []
    at = applied
    begins = [joins.get(start, start) for start in starts]
    place = bisect_right(begins, applied) - 1
    while at < target:
        manifest = manifest_at(starts[place]) if 0 <= place < len(starts) else None
        # Only the first interval may begin before the place that is to be continued: its early records are filtered.
        fits = manifest is not None and manifest.stop_seqno > at and (begins[place] == at or not run)
        if manifest is None or not fits:
            raise _gap(at, begins, target)
        run.append(manifest)
        at = manifest.stop_seqno
        place += 1
    return tuple(run)


def _gap(at: int, starts: Sequence[int], target: int) -> GapError:
    after = [start for start in starts if start > at]
    return GapError(
        "an interval is missing between what the table has and what is to be applied",
        why=f"nothing extracted covers [{at}, {after[0] if after else target}) of the log",
        hint="extract the missing interval while the server still has its log, else load the table again",
        seqno=at,
    )


def plan_table(
    name: TableName, recorded: TableSchema, applied: int, target: int, manifests: Sequence[Manifest]
) -> Work | None:
    """The work that `manifests`, an unbroken run from `applied` to `target`, mean for a table; None: there is none.

    Raises:
        UnsupportedError: a barrier, or files of another schema than the table was made for.
    """
    _check_barriers(name, applied, target, manifests)
    files = tuple(
        file for manifest in manifests for file in manifest.of_table(name) if file.rows and file.max_seqno > applied
    )
    if not files:
        return None
    _check_schemas(name, recorded, files, manifests)
    return Work(name, recorded, applied, target, manifests[-1].stop, files, tuple(map(log_of, manifests)))


def _check_barriers(name: TableName, applied: int, target: int, manifests: Sequence[Manifest]) -> None:
    for barrier in (barrier for manifest in manifests for barrier in manifest.barriers):
        if applied < barrier.seqno <= target and _concerns(barrier, name) and not _harmless(barrier):
            raise UnsupportedError(
                "a statement that changes the table as a whole is not covered",
                why=barrier.statement,
                hint=f"drop the table in the warehouse, then: loader initial-load --table {name} --again",
                table=name,
                position=barrier.position,
            )


def _harmless(barrier: Barrier) -> bool:
    """Whether it leaves the rows and columns of tables that there are as they were."""
    changes = table_changes(barrier.statement, barrier.database, barrier.sql_mode, barrier.mariadb)
    return all(
        (isinstance(change, Created) and not change.replaces)
        or (isinstance(change, Altered) and set(map(type, change.actions)) <= {ChangeIndexes})
        for change in changes
    )


def _concerns(barrier: Barrier, name: TableName) -> bool:
    return not barrier.tables or str(name) in barrier.tables


def _check_schemas(
    name: TableName, recorded: TableSchema, files: Sequence[StagedFile], manifests: Sequence[Manifest]
) -> None:
    for file in files:
        if file.schema_id != recorded.schema_id:
            holder = next(manifest for manifest in manifests if file in manifest.files)
            staged = holder.schema_of(file.schema_id)
            raise UnsupportedError(
                "the table's schema changed",
                why=difference(recorded, staged),
                hint=f"drop the table in the warehouse, then: loader initial-load --table {name} --again",
                table=name,
                file=file.key,
            )


def difference(old: TableSchema, new: TableSchema) -> str:
    """The columns and the key in which two schemas differ, for a person."""
    before = {column.name: column for column in old.columns}
    after = {column.name: column for column in new.columns}
    parts = [f"column {column} {before[column]} was dropped" for column in before if column not in after]
    parts += [f"column {column} {after[column]} was added" for column in after if column not in before]
    parts += [
        f"column {column} was {_full(old, column)}, is {_full(new, column)}"
        for column in before
        if column in after and before[column] != after[column]
    ]
    if old.key != new.key:
        parts.append(f"the key was ({', '.join(old.key)}), is ({', '.join(new.key)})")
    return "; ".join(parts) or "the columns changed their order"


def _full(schema: TableSchema, name: str) -> str:
    column = schema.column(name)
    return f"{column} {column.charset}".strip()
