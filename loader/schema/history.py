"""The schemas of tables as of any transaction, for logs whose table maps have no names (binlog_row_metadata=MINIMAL).

They begin with what the server has at a position, and follow the statements of the log from there on. A table map still
tells types, sizes, signs and character sets, so that each is checked against the schema that is found here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from loader.errors import UnsupportedError
from loader.model.table import TableName, TableSchema
from loader.schema.alteration import Key, alter_columns, alter_key
from loader.schema.changes import (
    Action,
    Altered,
    Created,
    Dropped,
    Renamed,
    SchemaDropped,
    TableChange,
    Truncated,
    Unreadable,
)
from loader.schema.constants import UntoldError


@dataclass(frozen=True)
class _Table:
    """A table after a statement; without a schema it is not there, or `why` says what is not known of it."""

    schema: TableSchema | None
    key: Key
    why: str = ""


_ABSENT = _Table(None, Key((), sure=True))


class SchemaHistory:
    """The schemas of tables from a position of the log on.

    Args:
        seqno: of the position.
        schemas: of all tables that are captured then, as the server has them. A character set is empty after a
            statement that leaves it to the table: the table map tells it.
        primary: those whose key is a primary key, not a unique one.
    """

    def __init__(self, seqno: int, schemas: Iterable[TableSchema], primary: Container[TableName]) -> None:
        self._tables: dict[TableName, list[tuple[int, _Table]]] = defaultdict(list)
        for schema in schemas:
            key = Key(schema.key, sure=True, primary=schema.name in primary)
            self._put(seqno, schema.name, _Table(schema, key))

    def follow(self, seqno: int, changes: Iterable[TableChange]) -> None:
        """Go on by a statement of the transaction `seqno`; to be called in the order of the log."""
        for change in changes:
            match change:
                case Altered(table, actions):
                    self._put(seqno, table, _altered(self._now(table), actions))
                case Created():
                    self._create(seqno, change)
                case Dropped(table):
                    self._put(seqno, table, _ABSENT)
                case SchemaDropped(schema):
                    self._put_all(seqno, [name for name in self._tables if name.schema == schema], _ABSENT)
                case Renamed(old, new):
                    self._put(seqno, new, _named(self._now(old), new))
                    self._put(seqno, old, _ABSENT)
                case Unreadable(table, why):
                    lost = _unknown(f"a statement cannot be read: {why}")
                    self._put_all(seqno, [table] if table else list(self._tables), lost)
                case Truncated():
                    pass

    def at(self, name: TableName, seqno: int) -> TableSchema:
        """The schema that rows of the table have in the transaction `seqno`.

        Raises:
            UnsupportedError: the statements do not tell it.
        """
        known = [table for since, table in self._tables.get(name, []) if since <= seqno]
        found = known[-1] if known else _ABSENT
        if found.schema is None or not found.key.sure:
            raise UnsupportedError(
                "the columns of a table are not known at a position of the log",
                why=found.why or ("a unique key may be its key now" if found.schema else "no statement made it"),
                hint="SET GLOBAL binlog_row_metadata=FULL on the server, then load the table again",
                table=name,
                seqno=seqno,
            )
        return found.schema

    def _now(self, name: TableName) -> _Table:
        known = self._tables.get(name)
        return known[-1][1] if known else _ABSENT

    def _put(self, seqno: int, name: TableName, table: _Table) -> None:
        self._tables[name].append((seqno, table))

    def _put_all(self, seqno: int, names: Sequence[TableName], table: _Table) -> None:
        for name in names:
            self._put(seqno, name, table)

    def _create(self, seqno: int, change: Created) -> None:
        if change.if_not_exists and self._now(change.table) != _ABSENT:
            return
        if change.like is not None:
            made = _named(self._now(change.like), change.table)
        elif change.defines is None:
            made = _unknown("CREATE TABLE does not tell its columns")
        else:
            made = _altered(_Table(TableSchema(change.table, (), ()), _ABSENT.key), change.defines)
        self._put(seqno, change.table, made)


def _unknown(why: str) -> _Table:
    return _Table(None, _ABSENT.key, why)


def _named(table: _Table, name: TableName) -> _Table:
    return replace(table, schema=replace(table.schema, name=name)) if table.schema else table


def _altered(table: _Table, actions: Sequence[Action]) -> _Table:
    if table.schema is None:
        return table
    try:
        after = alter_columns(table.schema.columns, actions)
        key = alter_key(table.key, actions, after)
    except UntoldError as error:
        return _unknown(str(error))
    return _Table(replace(table.schema, columns=tuple(one.column for one in after), key=key.columns), key)
