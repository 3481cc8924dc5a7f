"""Classifies statements of the log: no effect on captured tables, changes of rows, or changes of whole tables.

A statement that cannot be parsed counts as a change of every table: it stops the tables instead of being ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from loader.model.name_folding import folded_table
from loader.model.table import TableName
from loader.schema.changes import Created, SchemaDefined, SchemaDropped, Shadowed, TableChange, Unreadable
from loader.schema.cursor import TokenCursor
from loader.schema.lexer import UNKNOWN, Token, UnreadableError, tokens
from loader.schema.statement_reader import has_query, inner_statement, table_changes, tables_of


class Kind(Enum):
    """What a statement does."""

    NONE = "none"  # it cannot change captured rows or columns
    BARRIER = "barrier"  # it creates, truncates, drops, renames or alters a table
    SHADOW = "shadow"  # it gives a temporary table a name
    ROWS = "rows"  # it changes rows, and the log does not have them
    UNDO = "undo"  # it rolls back a part of its transaction


@dataclass(frozen=True)
class Effect:
    """Kind and tables; without tables any table may be meant. `schema`: a database that is dropped."""

    kind: Kind
    tables: tuple[TableName, ...] = ()
    schema: str = ""


_NOTHING = Effect(Kind.NONE)
_HARMLESS = {
    "SAVEPOINT", "RELEASE", "FLUSH", "ANALYZE", "OPTIMIZE", "CHECK", "GRANT", "REVOKE", "SET", "RESET", "KILL",
    "CACHE", "INSTALL", "UNINSTALL",
}  # fmt: skip
_CHANGES_ROWS = {"INSERT", "REPLACE", "UPDATE", "DELETE", "CALL", "DO", "WITH", "SELECT"}
"""SELECT and DO are logged for the functions that they call."""

_VERB = re.compile(r"(?:\s|/\*(?!M?!).*?\*/|--\s[^\n]*|#[^\n]*)*(\w+)", re.DOTALL)
_LITERAL = r"(?:'(?:[^'\\]|''|\\.)*+'|(?<![\w$.`\"])-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w$.])|NULL\b)"
_OPAQUE = r"`(?:[^`]|``)*`|\"(?:[^\"\\]|\"\"|\\.)*\"|/\*.*?\*/|--\s[^\n]*|\#[^\n]*"
_LISTS = re.compile(rf"(?P<opaque>{_OPAQUE})|(?P<first>{_LITERAL})(?:\s*+,\s*+{_LITERAL})*+", re.DOTALL | re.IGNORECASE)
_ROWS = re.compile(
    rf"(?P<opaque>{_OPAQUE})|(?P<first>\(\s*{_LITERAL}\s*\))(?:\s*+,\s*+\(\s*{_LITERAL}\s*\))*+", re.DOTALL
)
_ANALYZE = re.compile(r"\A(?:\s|/\*(?!M?!).*?\*/)*ANALYZE\s+(?:FORMAT\s*=\s*\w+\s+)?", re.DOTALL | re.IGNORECASE)
_EXECUTED = re.compile(r"/\*M?!")
_PARSED_MOST = 16 * 1024
"""Maximum characters for the parser, which needs 30 seconds for a million."""
_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE"}
"""Reserved words between a verb and its table. In `UPDATE LOW_PRIORITY t`, sqlglot takes the word for the table and `t`
for its alias."""
_REPLACE = re.compile(r"^\s*REPLACE\b", re.IGNORECASE)  # sqlglot does not parse it


def effect(text: str, database: str, sql_mode: int, mariadb: bool, *, folds: bool = False) -> Effect:
    """Return what a statement does. Arguments: see `table_changes`."""
    try:
        cursor = TokenCursor(inner_statement(tokens(text, sql_mode, mariadb)), folds=folds)
        verb = cursor.next.word
        if verb == "ROLLBACK":
            return Effect(Kind.UNDO)
        if verb == "XA":
            return Effect(Kind.ROWS)
        if verb == "ANALYZE" and _is_run(cursor):
            return Effect(Kind.ROWS, _written_tables(_ANALYZE.sub("", text), database, folds=folds))
        if verb in _HARMLESS:
            return _NOTHING
        if verb == "LOAD":
            return Effect(Kind.ROWS, _loaded_table(cursor, database))
    except UnreadableError:
        return Effect(Kind.BARRIER)
    if verb in _CHANGES_ROWS:
        readable = not any(map(_has_space, cursor.tokens))
        return Effect(Kind.ROWS, _written_tables(text, database, folds=folds) if readable else ())
    found = _effect_of_changes(table_changes(text, database, sql_mode, mariadb, folds=folds))
    if verb == "CREATE" and found.tables and _creates_with_query(cursor.tokens):
        return Effect(Kind.ROWS, found.tables)
    return found


def effective_text(text: str, database: str, sql_mode: int, mariadb: bool) -> str:
    """Return the statement that does what a failed statement did. Arguments: see `table_changes`.

    MariaDB drops the old table before a CREATE OR REPLACE TABLE fails. If it has a query, MariaDB logs this DROP,
    otherwise the whole statement with its error. Other failed statements do what their text says: a DROP TABLE also
    names tables that did not exist.
    """
    match table_changes(text, database, sql_mode, mariadb):
        case (Created(TableName(schema, table), replaces=True),):
            name = f"{_quoted(schema)}.{_quoted(table)}"
            return f"DROP TABLE IF EXISTS {name} /* Generated to handle failed CREATE OR REPLACE */"
    return text


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def writes_by_statement(text: str, database: str, sql_mode: int, mariadb: bool) -> bool:
    """Return whether a statement changes or rolls back rows without logging them.

    For a verb such as INSERT, the start of the statement is enough.
    """
    return begins_with_row_verb(text) or effect(text, database, sql_mode, mariadb).kind in (Kind.ROWS, Kind.UNDO)


def begins_with_row_verb(text: str) -> bool:
    """Return whether the first word of a statement is a verb that changes or rolls back rows."""
    found = _VERB.match(text)
    return found is not None and found[1].upper() in _CHANGES_ROWS | {"ROLLBACK", "LOAD", "XA"}


def schema_changes(text: str, database: str, sql_mode: int, mariadb: bool) -> tuple[TableChange, ...]:
    """Return the `table_changes` of a DDL statement; empty for other statements."""
    try:
        verb = TokenCursor(inner_statement(tokens(text, sql_mode, mariadb))).next.word
    except UnreadableError as error:
        return (Unreadable(None, str(error)),)
    defines_nothing = verb in _HARMLESS | _CHANGES_ROWS | {"ROLLBACK", "LOAD", "XA"}
    return () if defines_nothing else table_changes(text, database, sql_mode, mariadb)


def _creates_with_query(found: Sequence[Token]) -> bool:
    words = [token.word for token in found]
    return "TABLE" in words and has_query(found[words.index("TABLE") + 1 :])


def _effect_of_changes(changes: tuple[TableChange, ...]) -> Effect:
    """Return the effect of changes of whole tables."""
    match changes:
        case () | (SchemaDefined(),):
            return _NOTHING
        case (SchemaDropped(schema),):
            return Effect(Kind.BARRIER, schema=schema)
        case (Unreadable(None),):
            return Effect(Kind.BARRIER)
        case (Shadowed(table),):
            return Effect(Kind.SHADOW, (table,))
    return Effect(Kind.BARRIER, tuple(dict.fromkeys(table for change in changes for table in tables_of(change))))


def _has_space(token: Token) -> bool:
    """Return whether a bare name has a space of Unicode: a letter for the server, and a space for sqlglot."""
    return token.kind == "word" and any(one.isspace() or one == UNKNOWN for one in token.text)


def _is_run(cursor: TokenCursor) -> bool:
    """Return whether ANALYZE is followed by a statement, which MariaDB runs. ANALYZE TABLE changes no rows."""
    cursor.at += 1
    if cursor.take("FORMAT", "="):
        cursor.at += 1
    return cursor.next.word in _CHANGES_ROWS


def _loaded_table(cursor: TokenCursor, database: str) -> tuple[TableName, ...]:
    """Return the table of LOAD DATA ... INTO TABLE."""
    while not (cursor.take("INTO", "TABLE") or cursor.next.kind == "end"):
        cursor.at += 1
    return (cursor.table(database),) if cursor.next.kind != "end" else ()


def _written_tables(text: str, database: str, *, folds: bool) -> tuple[TableName, ...]:
    """Return the tables that a statement may write to; empty if it cannot be parsed, or is too long for the parser.

    The parser ignores executable comments, which may name tables. A statement with one counts as not parsed.

    INSERT and REPLACE only read the tables of their query. UPDATE and DELETE count as writing to all their tables.
    """
    if len(text) > _PARSED_MOST:
        text = without_lists(text)
    if len(text) > _PARSED_MOST or _EXECUTED.search(text):
        return ()
    # Imported here: the import takes 0.1 s, and most jobs do not need sqlglot.
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(_REPLACE.sub("INSERT", text), dialect="mysql")
    except (SqlglotError, RecursionError):
        return ()
    found = parsed.this if isinstance(parsed, exp.Insert) else parsed
    names = dict.fromkeys(TableName(one.db or database, one.name) for one in found.find_all(exp.Table)) if found else {}
    if any(name.table.upper() in _MODIFIERS for name in names):
        return ()
    return tuple(folded_table(name) if folds else name for name in names)


def without_lists(text: str) -> str:
    """Return the statement with each list of literals reduced to one value, and each list of literal rows to one row.

    The result names the same tables. Lists of literals are most of the text of a statement of megabytes.
    """
    text = _LISTS.sub(lambda found: found["opaque"] or ("''" if found["first"][0] == "'" else found["first"]), text)
    return _ROWS.sub(lambda found: found["opaque"] or found["first"], text)
