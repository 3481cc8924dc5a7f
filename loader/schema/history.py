"""The schema of each table in any transaction, for logs without column names (binlog_row_metadata=MINIMAL).

A history starts with the tables that the server had at a position. From there on it applies the statements of the log.
A MINIMAL table map has types and sizes, and in MySQL signs and character sets. So every table map can be checked
against the schema of the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from loader.model.name_folding import folded_name, folded_table
from loader.model.table import TEXTS, Column, SchemaVersion, TableName, TableSchema
from loader.schema.alteration import (
    GENERATED_KEY,
    AlteredColumn,
    Key,
    alter_columns,
    alter_key,
    may_move_first_column,
)
from loader.schema.changes import (
    Action,
    Altered,
    ConvertCharset,
    Created,
    Dropped,
    Renamed,
    SchemaDefined,
    SchemaDropped,
    Shadowed,
    TableChange,
    Truncated,
    Unreadable,
)
from loader.schema.constants import NotLoggedError
from loader.schema.type_preservation import keeps_labels

_DOUBTFUL_KEY = "a unique key may be its key now"
_SHOWN = 200  # characters of a statement


@dataclass(frozen=True)
class KnownTable:
    """A table at a position.

    Attributes:
        schema: its schema; None if the table does not exist, or if `why` says that it is not known. A text column has
            an empty character set if no statement says it. An ENUM or SET has no labels if they are not known.
        key: its key.
        charset: default character set of its columns; empty if not known.
        why: why the schema, the labels or the key are not known.
    """

    schema: TableSchema | None
    key: Key
    charset: str = ""
    why: str = ""

    @classmethod
    def of(cls, schema: TableSchema, *, primary: bool, others: bool = True, charset: str = "") -> KnownTable:
        """Return a table whose key is known. `primary`, `others`: see Key."""
        return cls(schema, Key(schema.key, sure=True, primary=primary, others=others), charset)

    @property
    def unreadable_why(self) -> str:
        """Return why its row events cannot be decoded; empty if they can."""
        if self.schema is None:
            return self.why or "no statement made it"
        if unlabelled := _unlabelled(self.schema.columns):
            return self.why or f"CONVERT TO CHARACTER SET changes the labels of column {unlabelled[0]}"
        return "" if self.key.sure else self.why or _DOUBTFUL_KEY


_ABSENT = KnownTable(None, Key((), sure=True))


@dataclass(frozen=True)
class _TableVersion:
    """A table from the transaction `seqno` on, which ends at the position `at`."""

    seqno: int
    at: str
    table: KnownTable


@dataclass
class SchemaHistory:
    """The schemas of tables from a position of the log on.

    Attributes:
        charsets: default character set of each database.
        folds: table and database names are case-insensitive (lower_case_table_names of the server).
    """

    charsets: dict[str, str] = field(default_factory=dict)
    folds: bool = False
    _tables: dict[TableName, list[_TableVersion]] = field(default_factory=dict)

    def set_table(self, seqno: int, at: str, name: TableName, table: KnownTable) -> None:
        """Set a table from the transaction `seqno` on, which ends at the position `at`.

        Call this and `apply` in the order of the log. The last call at a seqno wins.
        """
        found = self._tables.setdefault(self._fold_table(name), [])
        if found and found[-1].seqno == seqno:
            found.pop()
        found.append(_TableVersion(seqno, at, table))

    def apply(self, seqno: int, at: str, changes: Iterable[TableChange], text: str, server_charset: str = "") -> None:
        """Apply the changes of a statement.

        Args:
            seqno: of its transaction.
            at: the position where its transaction ends.
            changes: what the statement does.
            text: the statement, for error texts.
            server_charset: character set of a database that it creates without one.
        """
        for change in changes:
            for name, table in self._new_states(change, server_charset):
                why = (
                    f"{table.unreadable_why}: {text[:_SHOWN]}"
                    if table != _ABSENT and table.unreadable_why
                    else table.why
                )
                self.set_table(seqno, at, name, table if table == self.latest(name) else replace(table, why=why))

    def versions(self, name: TableName) -> tuple[SchemaVersion, ...]:
        """Return the versions of the table's schema, ordered by seqno; empty if nothing is known of the table."""
        found = self._tables.get(self._fold_table(name), [])
        return tuple(
            SchemaVersion(one.seqno, one.at, None, one.table.unreadable_why)
            if one.table.unreadable_why or one.table.schema is None
            else SchemaVersion(one.seqno, one.at, replace(one.table.schema, name=name))
            for one in found
        )

    def named_versions(self, name: TableName) -> tuple[SchemaVersion, ...]:
        """Return the versions for a log with column names and key. Names and key of these versions may be wrong."""
        found = self._tables.get(self._fold_table(name), [])
        return tuple(SchemaVersion(one.seqno, one.at, one.table.schema, one.table.unreadable_why) for one in found)

    def latest(self, name: TableName) -> KnownTable:
        """Return the table after all statements; without a schema if nothing is known of it."""
        known = self._tables.get(self._fold_table(name))
        return known[-1].table if known else _ABSENT

    def latest_seqno(self, name: TableName) -> int:
        """Return the seqno of the last change of the table; 0 if nothing is known of it."""
        known = self._tables.get(self._fold_table(name))
        return known[-1].seqno if known else 0

    def names(self) -> list[TableName]:
        """Return all tables that have a version, sorted."""
        return sorted(self._tables)

    def tables(self) -> Mapping[TableName, KnownTable]:
        """Return the tables that exist after all statements, or whose state is not known."""
        latest = {name: known[-1].table for name, known in sorted(self._tables.items())}
        return {name: table for name, table in latest.items() if table != _ABSENT}

    def _new_states(self, change: TableChange, server_charset: str) -> Iterable[tuple[TableName, KnownTable]]:
        """Return the tables that a change modifies, in their new state."""
        match change:
            case Altered(table, actions, charset):
                return [(table, self._alter(self.latest(table), actions, charset))]
            case Created():
                return self._create(change)
            case Dropped(table):
                return [(table, _ABSENT)]
            case SchemaDropped(schema):
                self.charsets.pop(self._fold_schema(schema), None)
                return [(name, _ABSENT) for name in self._tables if name.schema == self._fold_schema(schema)]
            case SchemaDefined():
                self._define(change, server_charset)
            case Renamed(_, new, if_exists=True) if self.latest(new) != _ABSENT:
                pass  # the server refuses to rename a table to the name of another
            case Renamed(old, new):
                # The new name last: servers log a rename to the same name.
                return [(old, _ABSENT), (new, _renamed_table(self.latest(old), new))]
            case Unreadable(table, why):
                lost = unknown_table(f"a statement cannot be parsed: {why}")
                return [(name, lost) for name in ([table] if table else list(self._tables))]
            case Truncated() | Shadowed():
                pass
        return []

    def _define(self, change: SchemaDefined, server_charset: str) -> None:
        schema = self._fold_schema(change.schema)
        if change.if_not_exists and schema in self.charsets:
            return
        if charset := change.charset or (server_charset if change.made else ""):
            self.charsets[schema] = charset

    def _create(self, change: Created) -> list[tuple[TableName, KnownTable]]:
        if change.if_not_exists and self.latest(change.table) != _ABSENT:
            return []
        if change.like is not None:
            made = _renamed_table(self.latest(change.like), change.table)
            return [(change.table, made if made != _ABSENT else unknown_table(f"nothing is known of {change.like}"))]
        if change.defines is None:
            return [(change.table, unknown_table("CREATE TABLE does not list its columns, or they cannot be parsed"))]
        charset = change.charset or self.charsets.get(self._fold_schema(change.table.schema), "")
        empty = KnownTable(TableSchema(change.table, (), ()), Key((), sure=True, others=False), charset)
        return [(change.table, self._alter(empty, change.defines, ""))]

    def _alter(self, table: KnownTable, actions: Sequence[Action], charset: str) -> KnownTable:
        if table.schema is None:
            return table
        charset = charset or table.charset
        if converted := next((action for action in actions if isinstance(action, ConvertCharset)), None):
            charset = converted.charset or self.charsets.get(self._fold_schema(table.schema.name.schema), "")
        if may_move_first_column(table.schema.columns, actions):
            return unknown_table(
                f"the statement does not tell whether MySQL generated {GENERATED_KEY} and keeps it first"
            )
        try:
            after = alter_columns(table.schema.columns, actions)
            key = alter_key(table.key, actions, after)
        except NotLoggedError as error:
            return unknown_table(str(error))
        columns = tuple(one.column if _is_doubtful(one) else _with_charset(one.column, charset) for one in after)
        columns = tuple(_without_changed_labels(table.schema, after, columns))
        why = table.why if _unlabelled(table.schema.columns) and _unlabelled(columns) else ""
        return KnownTable(replace(table.schema, columns=columns, key=key.columns), key, charset, why)

    def _fold_schema(self, name: str) -> str:
        return folded_name(name) if self.folds else name

    def _fold_table(self, name: TableName) -> TableName:
        return folded_table(name) if self.folds else name


def _is_doubtful(one: AlteredColumn) -> bool:
    """Return whether the server decides which of two character sets a statement gives to a column."""
    return one.widens and one.action is not None and one.action.definition.charset not in {"", one.column.charset}


def _with_charset(column: Column, charset: str) -> Column:
    """Return the column with the character set of its table if it has none; unchanged if that makes a text binary."""
    if column.charset or not (column.labels or column.type in TEXTS):
        return column
    return column if charset == "binary" and not column.labels else replace(column, charset=charset)


def _without_changed_labels(
    before: TableSchema, after: Sequence[AlteredColumn], columns: Sequence[Column]
) -> Iterator[Column]:
    """Yield the columns, without the labels that CONVERT TO CHARACTER SET changes: it keeps their bytes."""
    charsets = {column.name: column.charset for column in before.columns}
    for one, column in zip(after, columns, strict=True):
        old = charsets.get(one.before or "", "")
        changed = one.widens and old != column.charset
        kept = not changed or keeps_labels(replace(column, charset=old), column.charset)
        yield column if kept else replace(column, labels=())


def _unlabelled(columns: Iterable[Column]) -> list[str]:
    """Return the names of the columns whose labels are not known."""
    return [column.name for column in columns if column.type in {"enum", "set"} and not column.labels]


def unknown_table(why: str) -> KnownTable:
    """Return a table whose columns are not known, and why."""
    return KnownTable(None, Key((), sure=True), why=why)


def _renamed_table(table: KnownTable, name: TableName) -> KnownTable:
    return replace(table, schema=replace(table.schema, name=name)) if table.schema else table
