"""Parses a DDL statement of the log into changes of tables.

Sources: MySQL manual, "Data Definition Statements"; MariaDB manual, "SQL Statements & Structure", "Data Definition".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from loader.model.engines import FOREIGN_ENGINES, NO_ROWS
from loader.model.table import TableName
from loader.schema.alter import AlterReader
from loader.schema.changes import (
    CASCADES,
    REPAIRED,
    UNSUPPORTED,
    VERSIONED,
    Action,
    Altered,
    ChangeIndexes,
    Created,
    DropKey,
    Dropped,
    ModifyColumn,
    Reload,
    Renamed,
    SchemaDefined,
    SchemaDropped,
    Shadowed,
    TableChange,
    Truncated,
    Unreadable,
)
from loader.schema.cursor import TokenCursor
from loader.schema.definition import default_charset
from loader.schema.lexer import Token, UnreadableError, tokens

_OTHER_OBJECTS = {
    "USER", "ROLE", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "SERVER", "TABLESPACE", "UNDO", "LOGFILE",
    "INSTANCE", "RESOURCE", "PACKAGE", "SEQUENCE", "DEFINER", "REFERENCE", "LIBRARY",
}  # fmt: skip
_SCHEMA_OPTIONS = {"DEFAULT", "CHARACTER", "CHAR", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT", "UPGRADE"}
_PAD_CHAR = 1 << 31
_EMPTY_IS_NULL = 1 << 32  # of MariaDB
_FAR = 8
"""The kind of object must be among this many tokens after the verb."""


def table_changes(
    statement: str,
    database: str,
    sql_mode: int,
    mariadb: bool,
    *,
    folds: bool = False,
    unlogged_cascades: bool = False,
) -> tuple[TableChange, ...]:
    """Return the changes that a statement makes to whole tables, in order; empty if it makes none.

    Args:
        statement: its text.
        database: the default database it ran with.
        sql_mode: bits of the sql_mode it ran with.
        mariadb: a MariaDB server ran it.
        folds: the server stores table and database names in lower case (lower_case_table_names).
        unlogged_cascades: the server does not log the rows that foreign keys change. A table that gets a foreign key
            with CASCADE, SET NULL or SET DEFAULT must then stop.
    """
    try:
        found = tokens(statement, sql_mode, mariadb)
        inner = inner_statement(found)
        before = {token.word for token in found[: len(found) - len(inner)]}
        if "SQL_MODE" in before and {'"', "\\"} & set(statement):
            raise UnreadableError("SET STATEMENT sets another sql_mode than that by which the server read its quotes")
        cursor = TokenCursor(inner, folds=folds)
        return _Reader(cursor, database, sql_mode, mariadb, unlogged_cascades).read()
    except UnreadableError as error:
        return (Unreadable(None, str(error)),)


def inner_statement(found: list[Token]) -> list[Token]:
    """Return the statement inside MariaDB's `SET STATEMENT variable = value FOR statement`; others unchanged."""
    words = [token.word for token in found]
    if words[:2] != ["SET", "STATEMENT"]:
        return found
    return found[words.index("FOR") + 1 :] if "FOR" in words else []


class _Reader:
    """Parses one statement, with the settings it ran with."""

    def __init__(
        self, cursor: TokenCursor, database: str, sql_mode: int, mariadb: bool, unlogged_cascades: bool
    ) -> None:
        self.cursor = cursor
        self.database = database
        self.sql_mode = sql_mode
        self.mariadb = mariadb
        self.unlogged_cascades = unlogged_cascades

    def read(self) -> tuple[TableChange, ...]:
        cursor = self.cursor
        verb = cursor.take_any("CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "REPAIR")
        if verb == "TRUNCATE":
            cursor.take("TABLE")
            return (Truncated(cursor.table(self.database)),)
        if verb == "RENAME":
            return () if cursor.sees("USER") else self._read_rename()
        if verb == "REPAIR":
            return self._read_repair()
        if not verb:
            raise cursor.unexpected("CREATE, ALTER, DROP, TRUNCATE, RENAME or REPAIR")
        before = self._skip_to_object()
        if cursor.take_any("DATABASE", "SCHEMA"):
            return self._read_drop_schema() if verb == "DROP" else self._read_schema(verb, before)
        if cursor.take("INDEX"):
            return self._read_index(verb, before)
        if cursor.take_any("TABLE", "TABLES"):
            if "TEMPORARY" in before:
                return self._read_temporary() if verb == "CREATE" else ()
            return {"CREATE": self._read_create, "ALTER": self._read_alter, "DROP": self._read_drop}[verb](before)
        if cursor.take("SEQUENCE") and "REPLACE" in before:
            return (Dropped(cursor.table(self.database)),)  # MariaDB replaces a table of that name as well
        return ()

    def _skip_to_object(self) -> set[str]:
        """Skip to the kind of object; return the words before it, such as OR REPLACE.

        Raises:
            UnreadableError: no known kind of object follows.
        """
        before: list[str] = []
        while self.cursor.next.word not in {"TABLE", "TABLES", "DATABASE", "SCHEMA", "INDEX", *_OTHER_OBJECTS}:
            if len(before) == _FAR or self.cursor.next.kind == "end":
                raise self.cursor.unexpected("TABLE, INDEX, VIEW or another kind of object")
            before.append(self.cursor.next.word)
            self.cursor.at += 1
        return set(before)

    def _read_drop_schema(self) -> tuple[TableChange, ...]:
        self.cursor.take("IF", "EXISTS")
        return (SchemaDropped(self.cursor.schema()),)

    def _read_schema(self, verb: str, before: set[str]) -> tuple[TableChange, ...]:
        cursor = self.cursor
        missing = cursor.take("IF", "NOT", "EXISTS")
        schema = self.database if cursor.next.word in _SCHEMA_OPTIONS else cursor.schema()
        defined = SchemaDefined(schema, default_charset(cursor.rest()), verb == "CREATE", missing)
        return (SchemaDropped(schema), defined) if "REPLACE" in before else (defined,)

    def _read_create(self, before: set[str]) -> tuple[TableChange, ...]:
        cursor = self.cursor
        missing = cursor.take("IF", "NOT", "EXISTS")
        table = cursor.table(self.database)
        like = cursor.table(self.database) if cursor.take("LIKE") or cursor.take("(", "LIKE") else None
        if ("SYSTEM", "VERSIONING") in pairwise(token.word for token in cursor.rest()):
            return (Unreadable(table, VERSIONED),)
        if self.unlogged_cascades and _has_cascades(cursor.rest()):
            return (Unreadable(table, CASCADES),)
        if _has_foreign_engine(cursor.rest()):
            return (Unreadable(table, NO_ROWS),)
        defines = self._read_definitions(table)
        charset = default_charset(cursor.rest()) if defines is not None else ""
        return (Created(table, missing, like, "REPLACE" in before, defines, charset),)

    def _read_temporary(self) -> tuple[TableChange, ...]:
        self.cursor.take("IF", "NOT", "EXISTS")
        return (Shadowed(self.cursor.table(self.database)),)

    def _read_definitions(self, table: TableName) -> tuple[Action, ...] | None:
        """Parse the columns and keys of CREATE TABLE; return None if the statement does not have them all."""
        cursor = self.cursor
        if not cursor.take("(") or cursor.sees("SELECT"):
            return None
        if ("PERIOD", "FOR") in pairwise(token.word for token in cursor.rest()):
            return None
        try:
            found = tuple(AlterReader(cursor, self.database, self.sql_mode, self.mariadb, table).elements())
        except UnreadableError:
            return None
        rest = cursor.rest()
        return None if has_query(rest) or "AS" in {token.word for token in rest} else found

    def _read_alter(self, before: set[str]) -> tuple[TableChange, ...]:
        cursor = self.cursor
        cursor.take("IF", "EXISTS")
        table = cursor.table(self.database)
        self._skip_lock_timeout()
        start, reader = cursor.at, AlterReader(cursor, self.database, self.sql_mode, self.mariadb, table)
        try:
            actions = reader.read()
        except UnreadableError as error:
            # The part that cannot be parsed may name another table.
            several = {"RENAME", "TABLE"} & {token.word for token in cursor.tokens[start:]}
            return (Unreadable(None if several else table, str(error)),)
        if self.unlogged_cascades and _has_cascades(cursor.tokens[start:]):
            actions = (Reload(CASCADES), *actions)
        # Not even a table without rows can be followed from then on.
        if lasting := [one.reason for one in actions if isinstance(one, Reload) and one.reason in UNSUPPORTED]:
            names = [table, *(one.new for one in reader.others if isinstance(one, Renamed) and one.old == table)]
            return (*(Unreadable(name, lasting[0]) for name in names), *reader.others)
        if self.mariadb and self.sql_mode & _EMPTY_IS_NULL and Token("string", "") in cursor.tokens[start:]:
            actions = (Reload("sql_mode EMPTY_STRING_IS_NULL makes '' NULL"), *actions)
        if "IGNORE" in before:
            actions = (Reload("ALTER IGNORE may delete rows"), *actions)
        if self.sql_mode & _PAD_CHAR and any(isinstance(action, ModifyColumn) for action in actions):
            actions = (Reload("sql_mode PAD_CHAR_TO_FULL_LENGTH pads a CHAR that gets another type"), *actions)
        return (Altered(table, actions, reader.charset), *reader.others)

    def _read_drop(self, before: set[str]) -> tuple[TableChange, ...]:
        self.cursor.take("IF", "EXISTS")
        return tuple(map(Dropped, self._read_tables()))

    def _read_repair(self) -> tuple[TableChange, ...]:
        """Parse REPAIR TABLE. REPAIR VIEW of MariaDB changes no rows."""
        if not self.cursor.take_any("TABLE", "TABLES"):
            self.cursor.need("VIEW")
            return ()
        return tuple(Altered(table, (REPAIRED,)) for table in self._read_tables())

    def _read_tables(self) -> list[TableName]:
        found = [self.cursor.table(self.database)]
        while self.cursor.take(","):
            found.append(self.cursor.table(self.database))
        return found

    def _read_rename(self) -> tuple[TableChange, ...]:
        cursor = self.cursor
        if not cursor.take("TABLES"):
            cursor.need("TABLE")
        exists = cursor.take("IF", "EXISTS")
        found: list[TableChange] = []
        while True:
            old = cursor.table(self.database)
            self._skip_lock_timeout()
            cursor.need("TO")
            found.append(Renamed(old, cursor.table(self.database), exists))
            if not cursor.take(","):
                return tuple(found)

    def _read_index(self, verb: str, before: set[str]) -> tuple[TableChange, ...]:
        """Parse CREATE or DROP INDEX. Only a unique index can be the key of a table.

        MariaDB can replace a unique index by another index (CREATE OR REPLACE).
        """
        cursor = self.cursor
        if verb == "CREATE" and before.isdisjoint({"UNIQUE", "REPLACE"}):
            return ()
        _ = cursor.take("IF", "EXISTS") or cursor.take("IF", "NOT", "EXISTS")
        name = cursor.name()
        while not cursor.take("ON"):
            cursor.name()
        table = cursor.table(self.database)
        return (Altered(table, (DropKey() if verb == "DROP" and name.upper() == "PRIMARY" else ChangeIndexes(),)),)

    def _skip_lock_timeout(self) -> None:
        """Skip WAIT n and NOWAIT: MariaDB's lock timeout."""
        if self.cursor.take("WAIT"):
            self.cursor.pop("number")
        else:
            self.cursor.take("NOWAIT")


def has_query(found: Sequence[Token]) -> bool:
    """Return whether a CREATE TABLE has a query: SELECT, TABLE or VALUES, with or without parentheses.

    `found`: the tokens behind TABLE. The VALUES of a partition are behind its name.
    """
    depth, before = 0, ""
    for word in (token.word for token in found):
        if word == "SELECT" or (word in {"TABLE", "VALUES"} and (not depth or before == "(")):
            return True
        depth += {"(": 1, ")": -1}.get(word, 0)
        before = word
    return False


def _has_foreign_engine(found: Sequence[Token]) -> bool:
    """Return whether a table gets an engine of FOREIGN_ENGINES. `found`: the tokens behind its name."""
    named = [token.text.upper() for token in found if token.word != "="]
    return any(word == "ENGINE" and engine in FOREIGN_ENGINES for word, engine in pairwise(named))


def _has_cascades(found: Sequence[Token]) -> bool:
    """Return whether a foreign key makes the server change rows of the table that is defined."""
    words = [token.word for token in found]
    triples = zip(words, words[1:], words[2:], strict=False)
    return any(on == "ON" and what in {"DELETE", "UPDATE"} and act in {"CASCADE", "SET"} for on, what, act in triples)


def tables_of(change: TableChange) -> tuple[TableName, ...]:
    """Return the tables that a change names."""
    match change:
        case Renamed(old, new):
            return old, new
        case SchemaDropped() | SchemaDefined():
            return ()
    return (change.table,) if change.table else ()
