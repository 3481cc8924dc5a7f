"""Parses the value of a DEFAULT clause: a literal, or an expression that only the server can compute."""

from __future__ import annotations

import re
from itertools import accumulate

from loader.schema.changes import Default
from loader.schema.cursor import TokenCursor
from loader.schema.lexer import Token

_OPERATORS = {
    "+",
    "-",
    "*",
    "/",
    "%",
    "|",
    "&",
    "^",
    "<",
    ">",
    "=",
    "!",
    "DIV",
    "MOD",
    "AND",
    "OR",
    "XOR",
    "LIKE",
    "IS",
}
_FORMS = {  # of literals behind a word that have the value of the text alone
    "_utf8": re.compile(".*", re.DOTALL),
    "DATE": re.compile(r"\d{4}-\d\d-\d\d"),
    "TIME": re.compile(r"\d\d:\d\d:\d\d"),
    "TIMESTAMP": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
}
_SIGNS = {"+", "-", "~", "!"}


def read_default(cursor: TokenCursor) -> Default:
    """Parse the default that comes next. A literal in parentheses counts as the literal.

    Raises:
        UnreadableError: no expression comes next.
    """
    start = cursor.at
    skip_expression(cursor)
    found = cursor.tokens[start : cursor.at]
    around = _parentheses(found)
    found = found[around : len(found) - around]
    return _literal(found) or Default("expression", " ".join(token.text for token in found)[:80])


def _parentheses(found: list[Token]) -> int:
    """Return the number of pairs of parentheses that enclose all tokens."""
    steps = [{"(": 1, ")": -1}.get(token.word, 0) for token in found]
    opening = next((at for at, step in enumerate(steps) if step != 1), 0)
    closing = next((at for at, step in enumerate(reversed(steps)) if step != -1), 0)
    return min(opening, closing, *list(accumulate(steps))[opening : len(steps) - closing])


def _literal(found: list[Token]) -> Default | None:
    if len(found) == 2 and found[0].word in {"+", "-"} and found[1].kind == "number":
        return Default("number", found[0].text.replace("+", "") + found[1].text)
    if len(found) == 2 and found[0].kind == "word" and found[1].kind == "string":
        form = _FORMS.get("_utf8" if found[0].text.startswith("_utf8") else found[0].word)
        return Default("string", found[1].text) if form and form.fullmatch(found[1].text) else None
    if len(found) != 1:
        return None
    match found[0].kind, found[0].word:
        case "string" | "number" | "hex" | "bits" as kind, _:
            return Default(kind, found[0].text)
        case _, "NULL":
            return Default("null")
        case _, "TRUE" | "FALSE" as word:
            return Default("number", "1" if word == "TRUE" else "0")
    return None


def skip_expression(cursor: TokenCursor) -> None:
    """Skip the expression that comes next: operands with operators between them."""
    _operand(cursor)
    while cursor.take_any(*_OPERATORS):
        while cursor.take_any(*_OPERATORS, "NOT"):
            pass
        _operand(cursor)


def _operand(cursor: TokenCursor) -> None:
    while cursor.take_any(*_SIGNS):
        pass
    if cursor.sees("("):
        cursor.group()
    elif cursor.take("INTERVAL"):
        _operand(cursor)
        cursor.name()
    elif cursor.take("NEXT", "VALUE", "FOR"):
        cursor.table("")
    elif cursor.next.kind in {"string", "number", "hex", "bits"}:
        cursor.at += 1
    else:
        _named(cursor)


def _named(cursor: TokenCursor) -> None:
    """Skip a name, a function call, or a literal after a word (an introducer or a type)."""
    cursor.name()
    while cursor.take("."):
        cursor.name()
    if cursor.sees("("):
        cursor.group()
    elif cursor.next.kind in {"string", "hex", "bits"}:
        cursor.at += 1
