"""Parses the type of a column definition into the server's name of the type.

Sources: MySQL manual, "Data Types", "Using Data Types from Other Database Engines"; MariaDB manual, "Data Types".
"""

from __future__ import annotations

from loader.schema.changes import ColumnDefinition
from loader.schema.cursor import TokenCursor
from loader.schema.lexer import UNKNOWN, UnreadableError
from loader.types.catalogue import declared_as
from loader.types.column_type import Encoding

_REAL_AS_FLOAT = 1 << 0
_ORACLE = 1 << 9
_MAXDB = 1 << 12

_INTEGERS = declared_as(Encoding.INTEGER)
_DECIMALS = declared_as(Encoding.DECIMAL)
_FLOATS = declared_as(Encoding.FLOAT, Encoding.DOUBLE)
_LABELLED = declared_as(Encoding.ENUM, Encoding.SET)
_STRINGS = declared_as(Encoding.TEXT, Encoding.BYTES)
_CHARS = {word for word, name in _STRINGS.items() if name == "char"}
_VARCHARS = {word for word, name in _STRINGS.items() if name == "varchar"}
_PLAIN = declared_as(Encoding.DATE, Encoding.UUID, Encoding.INET4, Encoding.INET6)
_FRACTIONAL = declared_as(Encoding.TIME, Encoding.DATETIME, Encoding.TIMESTAMP)
_WITH_LENGTH = declared_as(Encoding.YEAR, Encoding.VECTOR)
_CAPACITY = (("tiny", 1 << 8), ("", 1 << 16), ("medium", 1 << 24), ("long", 1 << 32))
_WIDEST = 4  # maximum bytes of a character


def read_type(cursor: TokenCursor, name: str, sql_mode: int, mariadb: bool) -> ColumnDefinition:
    """Parse the type that comes next; return a column `name` of this type, without attributes.

    Raises:
        UnreadableError: the type is unknown, or its meaning depends on settings that the log does not have.
    """
    if sql_mode & (_ORACLE | _MAXDB):
        raise UnreadableError("types have a different meaning in sql_mode ORACLE or MAXDB")
    if cursor.next.kind != "word":
        raise cursor.unexpected("a type")
    if cursor.take("SERIAL"):
        return ColumnDefinition(name, "bigint", unsigned=True, nullable=False, auto_increment=True)
    word = cursor.name().upper()
    if word in _INTEGERS:
        _numbers(cursor)
        return ColumnDefinition(name, _INTEGERS[word])
    if word in _DECIMALS:
        precision, scale = (*_numbers(cursor), 0, 0)[:2]
        return ColumnDefinition(name, "decimal", size=precision or 10, scale=scale)
    if word in _FLOATS:
        return _float(cursor, name, word, sql_mode)
    if word in _LABELLED:
        return ColumnDefinition(name, _LABELLED[word], labels=_labels(cursor))
    if word in _FRACTIONAL:
        return ColumnDefinition(name, _FRACTIONAL[word], size=sum(_numbers(cursor)))
    if word in {"BIT", "BINARY"}:
        size = _length(cursor, 1)
        return ColumnDefinition(name, word.lower(), size=size, length=size if word == "BINARY" else 0)
    return _string(cursor, name, word) or _other(cursor, name, word, mariadb)


def _numbers(cursor: TokenCursor) -> list[int]:
    """Read the numbers in parentheses, if parentheses come next."""
    return [int(token.text) for token in cursor.group() if token.kind == "number"] if cursor.sees("(") else []


def _float(cursor: TokenCursor, name: str, word: str, sql_mode: int) -> ColumnDefinition:
    if word == "DOUBLE":
        cursor.take("PRECISION")
    kind = "float" if word == "REAL" and sql_mode & _REAL_AS_FLOAT else _FLOATS[word]
    sizes = _numbers(cursor)
    if word == "FLOAT" and len(sizes) == 1 and sizes[0] > 24:
        kind = "double"
    return ColumnDefinition(name, kind, rounded=len(sizes) == 2)


def _labels(cursor: TokenCursor) -> tuple[str, ...]:
    """Read labels, without trailing spaces as on the server."""
    inside = cursor.group()
    if any(token.kind != "string" for token in inside[::2]) or any(token.word != "," for token in inside[1::2]):
        raise UnreadableError("the labels are not plain strings")
    if any(UNKNOWN in token.text for token in inside):
        raise UnreadableError("a label is not valid in the client's character set")
    return tuple(token.text.rstrip(" ") for token in inside[::2])


def _string(cursor: TokenCursor, name: str, word: str) -> ColumnDefinition | None:
    charset = "utf8mb3" if word in {"NATIONAL", "NCHAR", "NVARCHAR"} else ""
    if word == "NATIONAL":
        word = cursor.name().upper()
    if word in _CHARS and (cursor.take("VARYING") or (charset and cursor.take_any("VARCHAR", "VARCHARACTER"))):
        word = "VARCHAR"
    if word in _CHARS:
        return ColumnDefinition(name, "char", length=_length(cursor, 1), charset=charset)
    if word in _VARCHARS:
        return ColumnDefinition(name, "varchar", length=_length(cursor, 0), charset=charset)
    if word == "VARBINARY":
        return ColumnDefinition(name, "varbinary", length=_length(cursor, 0))
    if word in {"TEXT", "BLOB"}:
        return ColumnDefinition(name, _sized(word, _length(cursor, 0)))
    if word == "LONG":
        kind = "mediumblob" if cursor.take("VARBINARY") else "mediumtext"
        _ = cursor.take_any("VARCHAR", "VARCHARACTER") or (
            cursor.take_any("CHAR", "CHARACTER") and cursor.take("VARYING")
        )
        return ColumnDefinition(name, kind)
    return ColumnDefinition(name, _STRINGS[word]) if word in _STRINGS else None


def _length(cursor: TokenCursor, otherwise: int) -> int:
    return (_numbers(cursor) or [otherwise])[0]


def _sized(word: str, length: int) -> str:
    """Return the smallest type for BLOB(length) bytes or TEXT(length) characters."""
    if not length:
        return word.lower()
    widths = (1, _WIDEST) if word == "TEXT" else (1,)
    found = {next(size for size, capacity in _CAPACITY if length * width < capacity) for width in widths}
    if len(found) > 1:
        raise UnreadableError(f"the type of {word}({length}) depends on the character set")
    return found.pop() + word.lower()


def _other(cursor: TokenCursor, name: str, word: str, mariadb: bool) -> ColumnDefinition:
    if word == "JSON":
        return ColumnDefinition(name, "longtext", charset="utf8mb4") if mariadb else ColumnDefinition(name, "json")
    if word in _WITH_LENGTH:
        _numbers(cursor)
        return ColumnDefinition(name, _WITH_LENGTH[word])
    if word in _PLAIN:
        return ColumnDefinition(name, _PLAIN[word])
    raise UnreadableError(f"type {word} is not known")
