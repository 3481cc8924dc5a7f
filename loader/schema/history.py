"""The schemas of tables as of any transaction, for logs whose table maps have no names (binlog_row_metadata=MINIMAL).

They begin with what the server has at a position, and follow the statements of the log from there on. A table map still
tells types and sizes, and MySQL's signs and character sets, so that each is checked against the schema that is found
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from loader.model.table import TEXTS, Column, SchemaVersion, TableName, TableSchema
from loader.schema.alteration import AlteredColumn, Key, alter_columns, alter_key
from loader.schema.changes import (
    Action,
    Altered,
    ConvertCharset,
    Created,
    Dropped,
    Renamed,
    SchemaDefined,
    SchemaDropped,
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
        schema: None: it is not there, or `why` says what is not known of it. Texts whose character set no statement
            tells have an empty one.
        key: of it.
        charset: of columns that get none of their own; empty where that is not known.
    """

    schema: TableSchema | None
    key: Key
    charset: str = ""
    why: str = ""

    @classmethod
    def of(cls, schema: TableSchema, *, primary: bool, others: bool = True, charset: str = "") -> KnownTable:
        """A table whose key is known; `primary` and `others`: see Key."""
        return cls(schema, Key(schema.key, sure=True, primary=primary, others=others), charset)

    @property
    def unreadable_why(self) -> str:
        """Why its rows cannot be read; empty where they can."""
        if self.schema is None:
            return self.why or "no statement made it"
        return "" if self.key.sure else self.why or _DOUBTFUL_KEY


_ABSENT = KnownTable(None, Key((), sure=True))


@dataclass(frozen=True)
class _TableVersion:
    """A table from a transaction on, whose seqno is that of the position `at`."""

    seqno: int
    at: str
    table: KnownTable


@dataclass
class SchemaHistory:
    """The schemas of tables from a position of the log on.

    Attributes:
        charsets: of each database, that of tables that are made in it.
        folds: the server does not tell names apart by case (lower_case_table_names).
    """

    charsets: dict[str, str] = field(default_factory=dict)
    folds: bool = False
    _tables: dict[TableName, list[_TableVersion]] = field(default_factory=dict)

    def set_table(self, seqno: int, at: str, name: TableName, table: KnownTable) -> None:
        """A table is so from the transaction `seqno` on, which ends at the position `at`.

        Like `follow`, to be called in the order of the log; whoever comes last at a seqno is right.
        """
        found = self._tables.setdefault(self._folded(name), [])
        if found and found[-1].seqno == seqno:
            found.pop()
        found.append(_TableVersion(seqno, at, table))

    def apply(self, seqno: int, at: str, changes: Iterable[TableChange], text: str, server_charset: str = "") -> None:
        """Go on by a statement of the transaction `seqno`.

        Args:
            seqno: of the transaction.
            at: the position at its end.
            changes: what the statement does.
            text: of the statement, for errors about what it does not tell.
            server_charset: of databases that it makes without one.
        """
        for change in changes:
            for name, table in self._after(change, server_charset):
                why = (
                    f"{table.unreadable_why}: {text[:_SHOWN]}"
                    if table != _ABSENT and table.unreadable_why
                    else table.why
                )
                self.set_table(seqno, at, name, table if table == self.latest(name) else replace(table, why=why))

    def versions(self, name: TableName) -> tuple[SchemaVersion, ...]:
        """The schemas that rows of the table have, one after the other; none where nothing is known of it."""
        found = self._tables.get(self._folded(name), [])
        return tuple(
            SchemaVersion(one.seqno, one.at, None, one.table.unreadable_why)
            if one.table.unreadable_why or one.table.schema is None
            else SchemaVersion(one.seqno, one.at, replace(one.table.schema, name=name))
            for one in found
        )

    def named_versions(self, name: TableName) -> tuple[SchemaVersion, ...]:
        """The schemas of the table one after the other, for a log that tells its names and key: these may be wrong."""
        found = self._tables.get(self._folded(name), [])
        return tuple(SchemaVersion(one.seqno, one.at, one.table.schema, one.table.unreadable_why) for one in found)

    def latest(self, name: TableName) -> KnownTable:
        """The table after all statements; without a schema where nothing is known of it."""
        known = self._tables.get(self._folded(name))
        return known[-1].table if known else _ABSENT

    def latest_seqno(self, name: TableName) -> int:
        """The seqno from which on it is so; 0 where nothing is known of it."""
        known = self._tables.get(self._folded(name))
        return known[-1].seqno if known else 0

    def names(self) -> list[TableName]:
        """All tables that are known at any time."""
        return sorted(self._tables)

    def tables(self) -> Mapping[TableName, KnownTable]:
        """All tables that are there after all statements, or of which it is not known how they are."""
        latest = {name: known[-1].table for name, known in sorted(self._tables.items())}
        return {name: table for name, table in latest.items() if table != _ABSENT}

    def _after(self, change: TableChange, server_charset: str) -> Iterable[tuple[TableName, KnownTable]]:
        """The tables that a change leaves otherwise."""
        match change:
            case Altered(table, actions, charset):
                return [(table, self._altered(self.latest(table), actions, charset))]
            case Created():
                return self._created(change)
            case Dropped(table):
                return [(table, _ABSENT)]
            case SchemaDropped(schema):
                return [(name, _ABSENT) for name in self._tables if name.schema == self._cased(schema)]
            case SchemaDefined():
                self._define(change, server_charset)
            case Renamed(old, new):
                return [(new, _named(self.latest(old), new)), (old, _ABSENT)]
            case Unreadable(table, why):
                lost = _unknown(f"a statement cannot be read: {why}")
                return [(name, lost) for name in ([table] if table else list(self._tables))]
            case Truncated():
                pass
        return []

    def _define(self, change: SchemaDefined, server_charset: str) -> None:
        schema = self._cased(change.schema)
        if change.if_not_exists and schema in self.charsets:
            return
        if charset := change.charset or (server_charset if change.made else ""):
            self.charsets[schema] = charset

    def _created(self, change: Created) -> list[tuple[TableName, KnownTable]]:
        if change.if_not_exists and self.latest(change.table) != _ABSENT:
            return []
        if change.like is not None:
            made = _named(self.latest(change.like), change.table)
            return [(change.table, made if made != _ABSENT else _unknown(f"nothing is known of {change.like}"))]
        if change.defines is None:
            return [(change.table, _unknown("CREATE TABLE does not tell its columns, or not in a way that is read"))]
        charset = change.charset or self.charsets.get(self._cased(change.table.schema), "")
        empty = KnownTable(TableSchema(change.table, (), ()), Key((), sure=True, others=False), charset)
        return [(change.table, self._altered(empty, change.defines, ""))]

    def _altered(self, table: KnownTable, actions: Sequence[Action], charset: str) -> KnownTable:
        if table.schema is None:
            return table
        charset = charset or table.charset
        if converted := next((action for action in actions if isinstance(action, ConvertCharset)), None):
            charset = converted.charset or self.charsets.get(self._cased(table.schema.name.schema), "")
        try:
            after = alter_columns(table.schema.columns, actions)
            key = alter_key(table.key, actions, after)
            columns = tuple(one.column if _doubtful(one) else _lettered(one.column, charset) for one in after)
            _check_labels(table.schema, after, columns)
        except NotLoggedError as error:
            return _unknown(str(error))
        return KnownTable(replace(table.schema, columns=columns, key=key.columns), key, charset)

    def _cased(self, name: str) -> str:
        return name.lower() if self.folds else name

    def _folded(self, name: TableName) -> TableName:
        return TableName(name.schema.lower(), name.table.lower()) if self.folds else name


def _doubtful(one: AlteredColumn) -> bool:
    """Whether it depends on the server which of two character sets a statement gives to a column."""
    return one.widens and one.action is not None and one.action.definition.charset not in {"", one.column.charset}


def _lettered(column: Column, charset: str) -> Column:
    """The column with the character set of its table if it has none of its own, but for texts that are bytes then."""
    if column.charset or not (column.labels or column.type in TEXTS):
        return column
    return column if charset == "binary" and not column.labels else replace(column, charset=charset)


def _check_labels(before: TableSchema, after: Sequence[AlteredColumn], columns: Sequence[Column]) -> None:
    """Refuse CONVERT TO CHARACTER SET where it makes other texts of labels, whose bytes it keeps."""
    charsets = {column.name: column.charset for column in before.columns}
    for one, column in zip(after, columns, strict=True):
        old = charsets.get(one.before or "", "")
        if one.widens and old != column.charset and not keeps_labels(replace(column, charset=old), column.charset):
            raise NotLoggedError(f"CONVERT TO CHARACTER SET makes other labels of those of column {column.name}")


def _unknown(why: str) -> KnownTable:
    return KnownTable(None, Key((), sure=True), why=why)


def _named(table: KnownTable, name: TableName) -> KnownTable:
    return replace(table, schema=replace(table.schema, name=name)) if table.schema else table
