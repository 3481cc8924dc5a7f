r"""Parses staged lines: the CSV dialect that the codec writes.

A field is bare, or quoted with `"` doubled inside. A bare `\N` is NULL. Inside quotes, `\n`, `\r`, `\0` and `\\` are
escapes. A quoted field that begins with `\x` has the hex digits of a value that could not be read. A staged record is
exactly one line.
"""

from __future__ import annotations

import re

from loader.errors import StagedDataError

HEAD_FIELDS = 5
"""Number of fields before the table's columns: operation, seqno, row offset, commit time, absent columns."""

UNREADABLE = b',"\\x'
r"""How the field of an unreadable value begins, with the comma before it. No other bytes of a line are these."""

_FIELD = re.compile(r'"((?:[^"]|"")*)"|([^,"]*)')
_ESCAPED = re.compile(r'\\.|""')
_BACKSLASHED = re.compile(r"\\.")
_PLAIN = {"\\n": "\n", "\\r": "\r", "\\0": "\0", "\\\\": "\\", '""': '"'}


class Unreadable(str):
    r"""The field of a value that could not be read: `\x` and the hex digits of its bytes."""

    __slots__ = ()


def fields_of(line: str) -> list[str | None]:
    """Return the fields of a line without its line feed; None for NULL.

    Raises:
        StagedDataError: the line does not follow the dialect.
    """
    found: list[str | None] = []
    at = 0
    while field := _FIELD.match(line, at):
        quoted, bare = field.groups()
        if quoted is None:
            found.append(None if bare == "\\N" else bare)
        else:
            found.append(_text(quoted) if "\\" in quoted or '"' in quoted else quoted)
        at = field.end()
        if at == len(line):
            return found
        if line[at] != ",":
            break
        at += 1
    raise StagedDataError("a staged line is not valid CSV of the loader", why=f"at character {at} of {line[:200]!r}")


def lines_of(staged: bytes) -> list[str]:
    """Return the lines of staged text, without their line feeds."""
    text = staged.decode("utf-8").split("\n")
    text.pop()
    return text


def resolve_escapes(text: str) -> str:
    """Return quoted text in which `""` is a quote already, with its backslash escapes resolved."""
    return _BACKSLASHED.sub(_plain, text) if "\\" in text else text


def _text(quoted: str) -> str:
    return Unreadable(quoted) if quoted.startswith("\\x") else _ESCAPED.sub(_plain, quoted)


def _plain(found: re.Match[str]) -> str:
    return _PLAIN.get(found[0], found[0])
