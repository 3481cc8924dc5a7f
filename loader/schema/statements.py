"""What a statement of the log does to tables: nothing, rows, or a table as a whole.

Only what decides is read: the verb, the kind of object and the names after it. A statement that cannot be read that
far counts as touching every table, so that it stops the tables rather than passing by.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError

from loader.model.table import TableName


class Kind(Enum):
    """What a statement does."""

    NONE = "none"  # no captured row or column can change by it
    BARRIER = "barrier"  # a table is emptied, dropped, renamed or altered
    ROWS = "rows"  # rows change, and the log does not say which
    UNDO = "undo"  # takes back a part of its transaction


@dataclass(frozen=True)
class Effect:
    """Kind and tables; no tables means that any table can be meant. `schema` names a whole dropped database."""

    kind: Kind
    tables: tuple[TableName, ...] = ()
    schema: str = ""


_NOTHING = Effect(Kind.NONE)
_HARMLESS = frozenset(
    [
        "SAVEPOINT",
        "RELEASE",
        "FLUSH",
        "ANALYZE",
        "OPTIMIZE",
        "CHECK",
        "REPAIR",
        "GRANT",
        "REVOKE",
        "SET",
        "RESET",
        "KILL",
        "CACHE",
        "INSTALL",
        "UNINSTALL",
    ]
)
_CHANGES_ROWS = frozenset(["INSERT", "REPLACE", "UPDATE", "DELETE", "CALL", "DO", "WITH"])
_OBJECTS = frozenset(
    [
        "USER",
        "ROLE",
        "VIEW",
        "TRIGGER",
        "PROCEDURE",
        "FUNCTION",
        "EVENT",
        "SERVER",
        "TABLESPACE",
        "UNDO",
        "LOGFILE",
        "INSTANCE",
        "RESOURCE",
        "INDEX",
        "SPATIAL",
        "PACKAGE",
        "SEQUENCE",
        "TABLE",
        "TABLES",
        "DATABASE",
        "SCHEMA",
    ]
)
_WHOLE_TABLE = {"TABLE", "TABLES"}
_EXECUTABLE_COMMENT = re.compile(r"/\*M?!\d*(.*?)\*/", re.DOTALL)


def effect(text: str, database: str) -> Effect:
    """What the statement does, run with that default database."""
    try:
        tokens = _tokens(_EXECUTABLE_COMMENT.sub(r" \1 ", text))
    except SqlglotError:
        return Effect(Kind.BARRIER)
    tokens = _carried(tokens)
    words = [token.text.upper() for token in tokens]
    verb = words[0] if words else ""
    if verb in _HARMLESS:
        return _NOTHING
    if verb == "ROLLBACK":
        return Effect(Kind.UNDO)
    if verb == "LOAD":
        return Effect(Kind.ROWS, _loaded(tokens, words, database))
    if verb in _CHANGES_ROWS:
        return Effect(Kind.ROWS, _mentioned(text, database))
    if verb == "TRUNCATE":
        return Effect(Kind.BARRIER, _names(tokens, 2 if words[1:2] == ["TABLE"] and _bare(tokens[1]) else 1, database))
    if verb == "RENAME":
        return _renamed(tokens, words, database)
    if verb in {"CREATE", "ALTER", "DROP"}:
        return _defined(tokens, words, database)
    return Effect(Kind.BARRIER)


def _tokens(text: str) -> list[Token]:
    tokens = MySQL().tokenize(text)
    # The dialect keeps the rest of a RENAME as one string.
    if len(tokens) == 2 and tokens[0].text.upper() == "RENAME" and tokens[1].token_type == TokenType.STRING:
        return [tokens[0], *MySQL().tokenize(tokens[1].text)]
    return tokens


def _carried(tokens: list[Token]) -> list[Token]:
    """The statement inside MariaDB's `SET STATEMENT variable = value FOR statement`; any other as it is."""
    words = [token.text.upper() for token in tokens]
    if words[:2] != ["SET", "STATEMENT"]:
        return tokens
    return tokens[words.index("FOR") + 1 :] if "FOR" in words else []


def _defined(tokens: list[Token], words: list[str], database: str) -> Effect:
    verb = words[0]
    at = next((i for i, word in enumerate(words[1:8], 1) if word in _OBJECTS and _bare(tokens[i])), None)
    if at is None:
        # CREATE DEFINER=... TRIGGER and its like have the kind further on; none of them is a table.
        return _NOTHING if "DEFINER" in words[1:8] else Effect(Kind.BARRIER)
    if words[at] in {"DATABASE", "SCHEMA"}:
        names = _names(tokens, at + 1, "")
        return Effect(Kind.BARRIER, schema=names[0].table if names else "") if verb == "DROP" else _NOTHING
    if words[at] not in _WHOLE_TABLE or "TEMPORARY" in words[1:at]:
        return _NOTHING
    names = _names(tokens, at + 1, database)
    if verb == "CREATE":
        if any(word == "SELECT" and _bare(token) for word, token in zip(words, tokens, strict=True)):
            return Effect(Kind.ROWS, names[:1])
        return Effect(Kind.BARRIER, names[:1]) if "REPLACE" in words[1:at] else _NOTHING
    if verb == "ALTER":
        others = _new_name(tokens, words, database) + _partner(tokens, words, at + 1, database)
        return Effect(Kind.BARRIER, names[:1] + others if names else ())
    return Effect(Kind.BARRIER, names)


def _bare(token: Token) -> bool:
    return token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)


def _renamed(tokens: list[Token], words: list[str], database: str) -> Effect:
    if words[1:2] == ["USER"]:
        return _NOTHING
    if words[1:2] not in (["TABLE"], ["TABLES"]):
        return Effect(Kind.BARRIER)
    return Effect(Kind.BARRIER, _names(tokens, 2, database))


def _loaded(tokens: list[Token], words: list[str], database: str) -> tuple[TableName, ...]:
    """The table of LOAD DATA ... INTO TABLE."""
    for at in range(len(words) - 1):
        if words[at : at + 2] == ["INTO", "TABLE"] and _bare(tokens[at + 1]):
            return _names(tokens, at + 2, database)[:1]
    return ()


def _new_name(tokens: list[Token], words: list[str], database: str) -> tuple[TableName, ...]:
    """The table that ALTER TABLE ... RENAME [TO | AS] makes."""
    for at, word in enumerate(words[:-1]):
        if word == "RENAME" and words[at + 1] not in {"COLUMN", "INDEX", "KEY"}:
            return _names(tokens, at + (2 if words[at + 1] in {"TO", "AS", "="} else 1), database)[:1]
    return ()


def _partner(tokens: list[Token], words: list[str], start: int, database: str) -> tuple[TableName, ...]:
    """The other table of ALTER TABLE ... EXCHANGE PARTITION ... WITH TABLE, and of CONVERT TABLE or TO TABLE."""
    for at in range(start, len(words) - 1):
        if words[at] == "TABLE" and _bare(tokens[at]) and words[at - 1] in {"WITH", "TO", "CONVERT"}:
            return _names(tokens, at + 1, database)[:1]
    return ()


def _names(tokens: list[Token], at: int, database: str) -> tuple[TableName, ...]:
    """The names in a list such as `IF EXISTS a.b, c TO d`, up to the first thing that is not one."""
    while at < len(tokens) and tokens[at].text.upper() in {"IF", "EXISTS", "NOT"} and _bare(tokens[at]):
        at += 1
    found: list[TableName] = []
    while at < len(tokens):
        if tokens[at].token_type == TokenType.DOT and at + 1 < len(tokens):
            at += 1
        schema, table = database, tokens[at].text
        if at + 2 < len(tokens) and tokens[at + 1].token_type == TokenType.DOT:
            schema, table = table, tokens[at + 2].text
            at += 2
        found.append(TableName(schema, table))
        at += 1
        at += {"WAIT": 2, "NOWAIT": 1}.get(tokens[at].text.upper(), 0) if at < len(tokens) else 0
        if at >= len(tokens) or not (tokens[at].token_type == TokenType.COMMA or tokens[at].text.upper() == "TO"):
            break
        at += 1
    return tuple(found)


def _mentioned(text: str, database: str) -> tuple[TableName, ...]:
    """Every table of a statement; none when it cannot be parsed."""
    try:
        parsed = sqlglot.parse_one(text, dialect="mysql")
    except (SqlglotError, RecursionError):
        return ()
    return tuple(TableName(table.db or database, table.name) for table in parsed.find_all(exp.Table))
