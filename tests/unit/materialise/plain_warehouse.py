"""A warehouse of plain dictionaries, for merges as they are planned: each stage is done by the letter, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from loader.errors import RetryableError
from loader.materialise.iceberg.table_metadata import GENERATION, SCHEMA_ID, SOURCE, Applied
from loader.materialise.iceberg.warehouse import recorded_schema, schema_property
from loader.materialise.merge import table_merge as merging
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.merge.table_results import idle_result
from loader.materialise.plan.column_names import column_name
from loader.materialise.plan.merge_plan import CopyRows, EmptyTable, FillColumns, Merge, Work
from loader.materialise.rules import TableRule
from loader.materialise.spec import CatalogSettings, TableResult
from loader.model.table import TableName, TableSchema
from loader.schema.evolution import ColumnOrigin, ConstantOrigin
from tests.integration.materialise.staged_writer import GENERATION as LOG
from tests.integration.materialise.staged_writer import SOURCE as SHOP
from tests.integration.materialise.staged_writer import Change

Rows = dict[Any, dict[str, Any]]
"""By key; of a history by the place of the change: its seqno and offset, or 0 and the key for rows of a load."""

DELETED, OP = "_is_deleted", "_op"


class Outage(RetryableError):
    """The catalog or its host was away for a moment."""


@dataclass
class PlainHistory:
    """What TableMetadata says of a table; `commits`: where it stood and its rows, oldest first."""

    properties: dict[str, str]
    commits: list[tuple[Applied, Rows]] = field(default_factory=list)
    exact_at: int = 0

    @property
    def head(self) -> int | None:
        return len(self.commits) or None

    def loaded_until(self, _: int | None) -> int:
        return self.exact_at

    @property
    def applied(self) -> Applied | None:
        return self.commits[-1][0] if self.commits else None

    @property
    def rows(self) -> Rows:
        return self.commits[-1][1] if self.commits else {}

    def applied_before(self, seqno: int | None) -> Applied | None:
        return next((one for one in self.applied_positions() if seqno is None or one.seqno < seqno), None)

    def applied_positions(self) -> Iterator[Applied]:
        return (one for one, _ in reversed(self.commits))


class PlainWarehouse:
    """All tables; `files`: the records of staged files by their keys."""

    catalog = CatalogSettings(type="jdbc", warehouse="memory:")
    session = None

    def __init__(self, files: Mapping[str, tuple[TableSchema, list[Change]]], dice: Random) -> None:
        self.tables: dict[TableName, PlainHistory] = {}
        self.files = files
        self.dice = dice
        self.outages = 0.0
        self.modes: dict[str, str] = {}

    def rule(self, table: TableName) -> TableRule:
        return TableRule(tables=("*",), mode=self.modes.get(table.table, "mirror"))  # type: ignore[arg-type]

    def metadata(self, table: TableName) -> Any:
        found = self.tables.get(table)
        return PlainHistory(found.properties, list(found.commits), found.exact_at) if found else None

    @contextmanager
    def borrow(self) -> Iterator[PlainWarehouse]:
        yield self

    def load(self, schema: TableSchema, rows: Rows, seqno: int, position: str) -> None:
        """As an initial load."""
        made = self._made(schema)
        name, text = schema_property(schema)
        made.properties[name] = text
        mode = self.rule(schema.name).mode
        names = self._names(schema)
        rows = {key: {names[column]: value for column, value in row.items()} for key, row in rows.items()}
        if mode == "soft_delete":
            rows = {key: row | {DELETED: 0} for key, row in rows.items()}
        elif mode == "history":
            rows = {(0, key): row | {OP: "I"} for key, row in rows.items()}
        self._commit(schema.name, schema, "", seqno, position, rows, loaded=True)

    def rows(self, table: TableName, columns: Iterable[str]) -> Rows:
        """The rows of a table by the source's names of its columns."""
        found = self.tables.get(table)
        names = {column_name(column, self.rule(table)): column for column in columns}
        return {
            key: {names.get(name, name): value for name, value in row.items()}
            for key, row in (found.rows if found else {}).items()
        }

    def _names(self, schema: TableSchema) -> dict[str, str]:
        return {column.name: column_name(column.name, self.rule(schema.name)) for column in schema.columns}

    def attempt(self, planner: MergePlanner, table: TableName, target: int, **how: Any) -> TableResult:
        """As `loader.materialise.merge.table_merge._attempt`; a commit may fail, or its reply be lost."""
        metadata = self.metadata(table)
        merge = planner.plan(table, metadata, target, **how)
        if isinstance(merge, TableResult):
            return merge
        rows = {key: dict(row) for key, row in metadata.rows.items()} if metadata else {}
        touched: dict[int, Any] = {}
        for place, stage in enumerate(merge.stages):
            rows = self._done(table, stage, rows, touched, place)
        applied = metadata.applied if metadata else None
        commit_position = bool(how.get("commit_position"))
        if (
            applied
            and not commit_position
            and merge.target == target
            and merging._is_noop(merge, touched, metadata, applied)
        ):
            return idle_result(table, applied, "unchanged", target)
        self._may_fail()
        commit = self._merged(merge, rows, metadata)
        self._may_fail()
        return TableResult(
            table=str(table), status="applied", applied_seqno=commit.seqno, position=commit.position,
            snapshot=commit.snapshot, complete_through=commit.seqno,
        )  # fmt: skip

    def _may_fail(self) -> None:
        if self.dice.random() < self.outages:
            raise Outage("the catalog did not answer")

    def _made(self, schema: TableSchema) -> PlainHistory:
        name, text = schema_property(schema)
        properties = {SOURCE: SHOP, GENERATION: LOG, name: text, SCHEMA_ID: schema.schema_id}
        properties |= self.rule(schema.name).properties
        return self.tables.setdefault(schema.name, PlainHistory(properties))

    def _merged(self, merge: Merge, rows: Rows, metadata: PlainHistory | None) -> Applied:
        schema = merge.schema or recorded_schema(metadata, merge.name)  # type: ignore[arg-type]
        made = self._made(schema)
        name, text = schema_property(schema)
        made.properties[name] = text
        final = self._names(schema)
        names = merge.aliases or final
        published = {
            key: {final[column.name]: row.get(names[column.name]) for column in schema.columns}
            | {name: row[name] for name in (DELETED, OP) if name in row}
            for key, row in rows.items()
        }
        return self._commit(merge.name, schema, merge.state, merge.target, merge.position, published)

    def _commit(
        self,
        table: TableName,
        schema: TableSchema,
        state: str,
        seqno: int,
        position: str,
        rows: Rows,
        *,
        loaded: bool = False,
    ) -> Applied:
        commits = self.tables[table].commits
        made = Applied(seqno, position, SHOP, LOG, len(commits) + 1, schema.schema_id, state, loaded)
        commits.append((made, rows))
        return made

    def _done(self, table: TableName, stage: Any, rows: Rows, touched: dict[int, Any], place: int) -> Rows:
        mode = self.rule(table).mode
        if isinstance(stage, EmptyTable):
            if mode == "soft_delete":
                return {key: row | {DELETED: 1} for key, row in rows.items()}
            return {} if mode == "mirror" else rows
        if isinstance(stage, CopyRows):
            _, taken = self.tables[stage.schema.name].commits[stage.snapshot - 1]
            return {
                key: {stage.aliases[column]: row[name] for column, name in self._names(stage.schema).items()}
                for key, row in taken.items()
            }
        if isinstance(stage, FillColumns):
            filled = {stage.aliases[column]: int(text) for column, text in stage.constants.items()}
            return {key: row | filled for key, row in rows.items()}
        if isinstance(stage, Work):
            changed = list(self._changes(stage))
            touched[place] = SimpleNamespace(keys=len(changed))
            for place, op, key, row in changed:
                if mode == "history":
                    assert place not in rows, "a record is in the history twice"
                    rows[place] = row | {OP: op}
                elif mode == "soft_delete":
                    rows[key] = row | {DELETED: int(op == "D")}
                elif op == "D":
                    rows.pop(key, None)
                else:
                    rows[key] = row
            return rows
        raise AssertionError(f"{table}: nothing was to be checked, but {stage} is")

    def _changes(self, work: Work) -> Iterator[tuple[tuple[int, int], str, int, dict[str, Any]]]:
        found = []
        for source in work.file_groups:
            for file in source.files:
                schema, changes = self.files[file.key]
                assert schema == source.schema
                for change in changes:
                    values = dict(zip((column.name for column in schema.columns), change.values, strict=True))
                    for window in source.ranges:
                        if window.after_seqno < change.seqno <= window.last_seqno:
                            row = {
                                work.aliases[column]: values[origin.old]
                                if isinstance(origin, ColumnOrigin)
                                else _constant(origin)
                                for column, origin in window.origins.items()
                            }
                            found.append((change.seqno, change.offset, change.op, int(values["id"]), row))
        places = [(seqno, offset) for seqno, offset, *_ in found]
        assert len(set(places)) == len(places), "a record counts twice"
        found.sort(key=lambda one: one[:2])
        return (((seqno, offset), *rest) for seqno, offset, *rest in found)  # type: ignore[misc]


def _constant(origin: ConstantOrigin) -> int | None:
    return None if origin.text is None else int(origin.text)
