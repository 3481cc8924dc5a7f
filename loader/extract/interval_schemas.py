"""The table schemas of an interval, for logs that do not describe columns completely.

They start from the schema document at the interval's start and follow the statements of the interval. The driver must
know these statements before rows are decoded. The result is the schema document for the start of the next interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from loader.binlog.events.statement import LogStatement
from loader.extract.ddl.barriers import sort_statements
from loader.extract.range_result import RangeResult
from loader.model.name_folding import folded_table
from loader.model.table import Column, SchemaVersion, TableName, TableSchema, Versions, logged_as
from loader.schema.changes import SchemaDropped, TableChange, Unreadable
from loader.schema.history import KnownTable, SchemaHistory
from loader.schema.statement_reader import tables_of
from loader.schema.statements import schema_changes
from loader.staging.chain import Checkpoint
from loader.staging.documents import Plan
from loader.staging.schemas import GivenSchema, Schemas, SchemaStore

_DEFINES = re.compile(r"CREATE|ALTER|DROP|RENAME", re.IGNORECASE)  # cheap enough for a million savepoints
_NOTHING_KNOWN = "no statement in the log creates the table, and it was absent when the definitions were read"


@dataclass(frozen=True)
class SchemasAfter:
    """The schema fields of a manifest; see Manifest."""

    digest: str = ""
    nameless: bool = False
    given: tuple[str, ...] = ()


NO_SCHEMAS = SchemasAfter()


@dataclass(frozen=True)
class _Statement:
    """A statement that changes tables, with the changes that were read from it."""

    statement: LogStatement
    changes: tuple[TableChange, ...]


@dataclass(frozen=True)
class IntervalSchemas:
    """The known table schemas in the interval of a plan.

    Attributes:
        before: the state of the log at the start of the interval.
        given: keys of the definitions that an operator gave for the interval.
    """

    store: SchemaStore
    plan: Plan
    before: Checkpoint
    given: tuple[str, ...]

    def versions(self, surveyed: Sequence[RangeResult]) -> Versions:
        """Return the schemas of the tables that a survey of all ranges found without column names."""
        names = sorted(set[TableName]().union(*(result.nameless for result in surveyed)))
        return self._versions(self._history(_read(result.statements for result in surveyed)), names)

    def corrected_versions(self, results: Sequence[RangeResult], used: Versions) -> Versions | None:
        """Return the schemas of MariaDB tables that were staged with wrong column types, or None.

        `used`: schemas with which the results were staged. Their tables are right.

        A plan holds these tables as they are at the end of the log. So its definition is wrong for rows before a
        statement that drops, alters or renames the table, in this interval or in a later interval of the same backlog.
        """
        # In the last interval of a backlog, nothing lies between it and the reading of the plan's definitions.
        last = bool(self.plan.side_effects_at)
        ambiguous = _ambiguous_staged_schemas(results) if self.plan.identity.kind == "mariadb" else []
        staged = [one for one in ambiguous if one[0] not in used.tables]
        statements = _read(result.statements for result in results) if staged else []
        if not staged or (last and not statements):
            return None
        history, now = self._history(statements), self.plan.known() if last else {}
        found = {name: _with_planned_types(history.named_versions(name), now.get(name)) for name, _, _ in staged}
        wrong = {name for name, schema, since in staged if _is_wrong(schema, since, found[name])}
        return Versions({name: found[name] for name in wrong}) if wrong else None

    def all_versions(self, results: Sequence[RangeResult]) -> Versions:
        """Return the schemas of all known tables, using the statements of all ranges."""
        history = self._history(_read(result.statements for result in results))
        return self._versions(history, history.names())

    def _versions(self, history: SchemaHistory, names: Sequence[TableName]) -> Versions:
        nothing = SchemaVersion(self.plan.start_seqno, self.plan.start, None, _NOTHING_KNOWN)
        found: dict[TableName, Sequence[SchemaVersion]] = {}
        for name in names:
            known = history.versions(name)
            found[name] = known if known and known[0].since <= nothing.since else (nothing, *known)
        return Versions(found, (nothing,))

    def after(
        self, results: Sequence[RangeResult], released: Sequence[RangeResult], *, nameless: bool, keep: bool
    ) -> SchemasAfter:
        """Return the schema fields of the manifest. With `keep`, the schema document is stored.

        Without changes it is the document of the start. If all tables have column names, nothing is compared.
        """
        statements = _read(result.statements for result in results)
        if not (nameless or statements or self.given):
            return SchemasAfter(self.before.schemas)
        history = self._history(statements)
        for result in (*results, *released):
            _confirm(history, result, self.plan)
        found = Schemas.of(history.tables(), history.charsets, folds=history.folds)
        if found == self._at_start:
            return SchemasAfter(self.before.schemas, nameless, self.given)
        return SchemasAfter(self.store.put(found) if keep else found.digest, nameless, self.given)

    @cached_property
    def _at_start(self) -> Schemas:
        return self.store.get(self.before.schemas)

    @cached_property
    def _read_late(self) -> Schemas:
        return self.store.get(self.plan.schemas)

    def _late(self, statements: Sequence[_Statement]) -> dict[TableName, KnownTable]:
        """Return tables that only the reading before the plan knows, and that no statement concerns up to that reading.

        Before the last interval of a backlog there are none: statements of the later intervals are not known.
        """
        if self.plan.schemas_at != self.plan.stop:
            return {}
        folds = self._read_late.folds
        known = {_folded(table.name, folds) for table in self._at_start.tables}
        changes = [change for one in statements for change in one.changes]
        return {
            table.name: table.known()
            for table in self._read_late.tables
            if _folded(table.name, folds) not in known
            and not any(_concerns(change, table.name, folds) for change in changes)
        }

    def _history(self, statements: Sequence[_Statement]) -> SchemaHistory:
        start, at = self.plan.start_seqno, self.plan.start
        schemas = self._at_start
        if not self.before.schemas:
            schemas = schemas.model_copy(update={"folds": self._read_late.folds, "charsets": self._read_late.charsets})
        history = schemas.history(start, at)
        for name, table in self._late(statements).items():
            history.set_table(start, at, name, table)
        waiting = sorted(map(self.store.given, self.given), key=lambda one: one.seqno)
        for one in statements:
            while waiting and waiting[0].seqno < one.statement.seqno:
                _give(history, waiting.pop(0))
            file, seqno = one.statement.position.rpartition(":")[0], one.statement.seqno
            end = f"{file}:{seqno % 10**12}"
            history.apply(seqno, end, one.changes, one.statement.text, one.statement.server_charset)
        for given in waiting:
            _give(history, given)
        return history


def _give(history: SchemaHistory, given: GivenSchema) -> None:
    """Apply a given definition. The transaction that ends at its position still had the definition before."""
    history.set_table(given.seqno + 1, given.at, given.table.name, given.table.known())


def _read(statements: Iterable[Sequence[LogStatement]]) -> list[_Statement]:
    """Return the statements that define tables, in log order.

    Statements that were read from an earlier server are left out. The document at the start has their changes.
    """
    defining = (one for some in statements for one in some if not one.read_before and _DEFINES.search(one.text))
    ordered = sort_statements(defining)
    read = (_Statement(one, schema_changes(one.text, one.database, one.sql_mode, one.mariadb)) for one in ordered)
    return [one for one in read if one.changes]


def _ambiguous_staged_schemas(results: Sequence[RangeResult]) -> list[tuple[TableName, TableSchema, tuple[int, int]]]:
    """Return staged schemas with columns that MariaDB's log describes incompletely, and their range of seqnos."""
    return [
        (file.name, schema, (file.min_seqno, file.max_seqno))
        for result in results
        for file in result.files
        if any(map(logged_as, (schema := result.schemas[file.schema_id]).columns))
    ]


def _with_planned_types(versions: tuple[SchemaVersion, ...], known: TableSchema | None) -> tuple[SchemaVersion, ...]:
    """Return the versions of a table. If there is only one, it gets the column types of the plan's definition."""
    if len(versions) != 1 or versions[0].schema is None or known is None:
        return versions
    schema, now = versions[0].schema, {column.name: column for column in known.columns}
    columns = (_planned_type(column, now.get(column.name)) for column in schema.columns)
    return (replace(versions[0], schema=replace(schema, columns=tuple(columns))),)


def _planned_type(column: Column, now: Column | None) -> Column:
    plain = logged_as(column) == str(column)
    return now if now and plain and logged_as(now) == logged_as(column) else column


def _is_wrong(staged: TableSchema, seqnos: tuple[int, int], versions: Sequence[SchemaVersion]) -> bool:
    """Return whether rows in a seqno range were staged with other column types than the table had, or may have had."""
    ends = [*(version.since for version in versions[1:]), math.inf]
    had = [(v.schema, end) for v, end in zip(versions, ends, strict=False) if v.since <= seqnos[1] and end > seqnos[0]]
    # If the log does not define a table, the plan's definition of it is right until the next statement changes it.
    unknown = any(schema is None and end < math.inf for schema, end in had)
    return unknown or any(
        logged_as(column) and logged_as(column) == logged_as(own) and column.type != own.type
        for schema, _ in had
        if schema
        for column in staged.columns
        for own in schema.columns
        if own.name == column.name
    )


def _concerns(change: TableChange, name: TableName, folds: bool) -> bool:
    if isinstance(change, Unreadable) and change.table is None:
        return True
    if isinstance(change, SchemaDropped):
        return _folded(TableName(change.schema, ""), folds).schema == _folded(name, folds).schema
    return _folded(name, folds) in {_folded(other, folds) for other in tables_of(change)}


def _folded(name: TableName, folds: bool) -> TableName:
    return folded_table(name) if folds else name


def _confirm(history: SchemaHistory, result: RangeResult, plan: Plan) -> None:
    """Give the history the schemas of table maps that no later statement changed."""
    for file in result.files:
        schema, now = result.schemas[file.schema_id], history.latest(file.name)
        if file.rows and file.min_seqno >= history.latest_seqno(file.name) and now.schema != schema:
            history.set_table(plan.stop_seqno, plan.stop, file.name, _known_table(schema, now))


def _known_table(schema: TableSchema, now: KnownTable) -> KnownTable:
    primary = now.key.primary and now.key.columns == schema.key
    return KnownTable.of(schema, primary=primary, others=now.key.others, charset=now.charset)
