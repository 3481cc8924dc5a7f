"""Tables as statements that make them again, so that a failing round needs nothing of what was before it."""

from __future__ import annotations

import re

from tests.chaos.access.columns import BINARIES, INTEGERS, Column, quoted
from tests.chaos.access.source import Session

_BEFORE = ("SET SESSION sql_mode = ''", "SET SESSION foreign_key_checks = 0")
_AFTER = ("SET SESSION sql_mode = DEFAULT", "SET SESSION foreign_key_checks = 1")
_ESCAPES = {b"\\0": b"\0", b"\\n": b"\n", b"\\r": b"\r", b"\\Z": b"\x1a", b"''": b"'"}
_QUOTED = re.compile(rb"`(?:[^`]|``)*`|'((?:[^'\\]|\\.|'')*)'", re.DOTALL)


def dump(session: Session) -> dict[str, list[str]]:
    """Return the statements that make each table with its rows; triggers are left out."""
    return {name: [*_BEFORE, *_table(session, name), *_AFTER] for name in session.tables()}


def _table(session: Session, name: str) -> list[str]:
    columns = [one for one in session.columns(name) if not one.generated]
    texts = ", ".join(f"coalesce({_literal(one)}, 'NULL')" for one in columns)
    names = ", ".join(one.quoted for one in columns)
    rows = session.rows(f"SELECT {texts} FROM {quoted(name)}") if columns else []
    made = [as_text(one[1]) for one in session.rows(f"SHOW CREATE TABLE {quoted(name)}", raw=True)]
    return made + [f"INSERT INTO {quoted(name)} ({names}) VALUES ({', '.join(map(str, row))})" for row in rows]


def as_text(statement: bytes) -> str:
    """Return a statement with its binary literals in hex: MariaDB shows the default of a VARBINARY as raw bytes."""
    return _QUOTED.sub(_hex_if_binary, statement).decode()


def _hex_if_binary(found: re.Match[bytes]) -> bytes:
    try:
        found[0].decode()
    except UnicodeDecodeError:
        value = re.sub(rb"\\.|''", lambda one: _ESCAPES.get(one[0], one[0][1:]), found[1], flags=re.DOTALL)
        return b"x'%s'" % value.hex().encode()
    return found[0]


def _literal(column: Column) -> str:
    """An expression of the server for the literal of a value."""
    name = column.quoted
    if column.type in INTEGERS or column.type in {"decimal", "double", "year"}:
        return name
    if column.type == "float":
        return f"CAST({name} AS DOUBLE)"
    if column.type == "bit":
        return f"{name} + 0"
    if column.type in BINARIES or column.type in {"point", "vector"}:
        return f"concat('x''', hex({name}), '''')"
    if column.type in {"date", "datetime", "timestamp", "time", "uuid", "inet4", "inet6"}:
        return f"concat('''', {name}, '''')"
    return f"concat('_utf8mb4 x''', hex(convert({name} USING utf8mb4)), '''')"
