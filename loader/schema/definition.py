"""Parses a column definition: name, type and attributes.

Sources: MySQL manual, "CREATE TABLE Statement" and "Data Types"; MariaDB manual, "CREATE TABLE", "Column Definitions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loader.schema.changes import ColumnDefinition
from loader.schema.cursor import TokenCursor
from loader.schema.datatype import read_type
from loader.schema.expression import read_default, skip_expression
from loader.schema.lexer import Token, UnreadableError
from loader.types.catalogue import names_of
from loader.types.column_type import Encoding

PRIMARY, UNIQUE = "primary", "unique"

_ALONE = {"VISIBLE", "INVISIBLE", "ENFORCED", "ZEROFILL", "SIGNED", "PERSISTENT", "STORED", "VIRTUAL", "COMPRESSED"}
_VALUED = {"COMMENT", "COLUMN_FORMAT", "STORAGE", "SRID", "REF_SYSTEM_ID", "ENGINE_ATTRIBUTE"}
_VALUED |= {"SECONDARY_ENGINE_ATTRIBUTE"}
_BYTES = {"char": "binary", "varchar": "varbinary"} | {
    f"{size}text": f"{size}blob" for size in ("tiny", "", "medium", "long")
}


def read_definition(cursor: TokenCursor, sql_mode: int, mariadb: bool) -> tuple[ColumnDefinition, str]:
    """Parse a column definition; return it, and its key: PRIMARY, UNIQUE, or "" for none.

    Raises:
        UnreadableError: an attribute or the type is unknown.
    """
    name = cursor.name()
    while cursor.take("."):
        name = cursor.name()
    key = UNIQUE if cursor.sees("SERIAL") else ""
    column = read_type(cursor, name, sql_mode, mariadb)
    while (read := _read_attribute(cursor, column, key)) is not None:
        column, key = read
    if column.charset not in {"", "binary"} and column.type in _BYTES.values():
        raise UnreadableError(f"MariaDB replaces {column.type} with a character set by a text type")
    if column.charset == "binary" and column.type in _BYTES:
        size = column.length if column.type == "char" else 0
        column = replace(column, type=_BYTES[column.type], size=size, charset="")
    return column, key


def _read_attribute(cursor: TokenCursor, column: ColumnDefinition, key: str) -> tuple[ColumnDefinition, str] | None:
    """Parse one attribute; return the column and its key with it, or None if no attribute comes next."""
    if (charset := _read_charset(cursor)) is not None:
        # A collation implies its character set; after CHARACTER SET it adds nothing.
        return replace(column, charset=column.charset or charset), key
    if cursor.take("SERIAL", "DEFAULT", "VALUE"):
        return replace(column, nullable=False, auto_increment=True), UNIQUE
    if cursor.take("DEFAULT"):
        if column.default is not None:
            raise UnreadableError("a column has several DEFAULT clauses, and it is not certain which of them counts")
        return replace(column, default=read_default(cursor)), key
    if cursor.take("ON", "UPDATE"):
        skip_expression(cursor)
    elif cursor.take("NOT", "NULL"):
        return replace(column, nullable=False), key
    elif cursor.take("NULL"):
        return replace(column, nullable=True), key
    elif cursor.take("AUTO_INCREMENT"):
        return replace(column, auto_increment=True), key
    elif cursor.take("PRIMARY", "KEY") or cursor.take("PRIMARY") or cursor.take("KEY"):
        return column, PRIMARY
    elif cursor.take("UNIQUE"):
        cursor.take("KEY")
        return column, key or UNIQUE
    elif cursor.take("GENERATED", "ALWAYS", "AS") or cursor.take("AS"):
        if cursor.take("ROW"):
            cursor.name()
        else:
            cursor.group()
        return replace(column, generated=True), key
    elif cursor.sees("UNSIGNED") or cursor.sees("ZEROFILL"):
        cursor.at += 1
        return replace(column, unsigned=column.type in _WITH_SIGN, positive=column.type in _FRACTIONS), key
    elif not _skip_attribute(cursor):
        return None
    return column, key


_FRACTIONS = {"decimal", "float", "double"}
_WITH_SIGN = names_of(Encoding.INTEGER)
"""Types whose `Column` can be unsigned. The staged text of DECIMAL, FLOAT, DOUBLE and YEAR does not depend on it."""


def default_charset(tokens: Sequence[Token]) -> str:
    """Return the character set in the options of a table or database, before any partitions; empty if there is none."""
    cursor, set_, collated = TokenCursor(list(tokens)), "", ""
    while cursor.next.kind != "end" and not cursor.sees("PARTITION"):
        if cursor.sees("COLLATE"):
            collated = _read_charset(cursor) or collated
        elif cursor.sees("CHARACTER", "SET") or cursor.sees("CHAR", "SET") or cursor.sees("CHARSET"):
            set_ = _read_charset(cursor) or set_
        else:
            cursor.at += 1
    return set_ or collated


def _read_charset(cursor: TokenCursor) -> str | None:
    if cursor.take("CHARACTER", "SET") or cursor.take("CHAR", "SET") or cursor.take("CHARSET"):
        cursor.take("=")
        return _charset_name(cursor.pop("word", "name", "string"))
    if cursor.take("COLLATE"):
        cursor.take("=")
        return _charset_name(cursor.pop("word", "name", "string").split("_")[0])
    named = cursor.take_any("ASCII", "UNICODE", "BYTE", "BINARY")
    return {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary", "BINARY": ""}[named] if named else None


def _charset_name(charset: str) -> str:
    lower = charset.lower()
    return {"utf8": "utf8mb3", "default": "", "uca1400": ""}.get(lower, lower)


def _skip_attribute(cursor: TokenCursor) -> bool:
    """Skip an attribute that changes no value; return whether one came next."""
    if cursor.take_any(*_VALUED):
        cursor.take("=")
        cursor.pop("word", "name", "string", "number")
    elif cursor.take("REFERENCES"):
        _skip_references(cursor)
    elif cursor.take("CONSTRAINT"):
        _ = cursor.sees("CHECK") or cursor.name()
        cursor.need("CHECK")
        cursor.group()
    elif cursor.take("CHECK"):
        cursor.group()
    elif cursor.take("COMPRESSED", "="):
        cursor.name()
    elif cursor.ahead(1).word == "=" and cursor.next.kind in {"word", "name"}:
        # Storage engines of MariaDB define their own attributes.
        cursor.at += 2
        cursor.pop("word", "name", "string", "number")
    else:
        return cursor.take("NOT", "ENFORCED") or cursor.take("NOT", "SECONDARY") or bool(cursor.take_any(*_ALONE))
    return True


def _skip_references(cursor: TokenCursor) -> None:
    cursor.table("")
    if cursor.sees("("):
        cursor.group()
    if cursor.take("MATCH"):
        cursor.name()
    while cursor.take("ON", "DELETE") or cursor.take("ON", "UPDATE"):
        _ = cursor.take("SET", "NULL") or cursor.take("SET", "DEFAULT") or cursor.take("NO", "ACTION") or cursor.name()
