"""Splits a statement into tokens, by the rules of the server that ran it.

Format: MySQL manual, "Language Structure"; MariaDB manual, "Comment Syntax", "Identifier Names". Servers do not log
executable comments for other versions. So the server executed all executable comments in the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

ANSI_QUOTES = 1 << 2
NO_BACKSLASH_ESCAPES = 1 << 20

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}
_CHARACTER, _UNIT = re.compile(".", re.DOTALL), re.compile(r"\\.|.", re.DOTALL)
_ESCAPED = {quote: re.compile(rf"{quote}{quote}|\\(.)", re.DOTALL) for quote in "'\""}
_FORM = r"""
    (?P<space> [ \t\n\v\f\r]+ | \#[^\n]* | --(?=[\s\x00-\x1f]|\Z)[^\n]* )
  | (?P<open> /\*{executable}(?:\d{{5,6}})? )
  | (?P<comment> /\*(?!{executable}).*?\*/ )
  | (?P<close> \*/ )
  | (?P<hex> [xX]'[0-9A-Fa-f]*' | 0x[0-9A-Fa-f]+(?![\w$]) )
  | (?P<bits> [bB]'[01]*' | 0b[01]+(?![\w$]) )
  | (?P<string> [nN]?'{single}*' {double_string} )
  | (?P<name> `(?:[^`]|``)*` {double_name} )
  | (?P<number> \d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w$]) )
  | (?P<word> [\w$\x80-\U0010ffff]+ )
  | (?P<symbol> (?!/\*)[^'"`] )
"""


UNKNOWN = "\ufffd"
"""Replaces invalid bytes in a statement: a name or value with it is not known."""

_SPACE_OR_LETTER = "\u00a0"
"""A space in character sets of one byte, and a letter of a name in UTF-8, as all other characters from U+0080 on."""


class Token(NamedTuple):
    """One token. `kind`: word, name (quoted), string, number, hex, bits, symbol. `text`: without quotes and escapes."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """Return a bare word in upper case, or a symbol; empty for all other kinds."""
        return self.text.upper() if self.kind in {"word", "symbol"} else ""


class UnreadableError(Exception):
    """A statement cannot be parsed. The text says why. It never leaves this package."""


def tokens(text: str, sql_mode: int, mariadb: bool) -> list[Token]:
    """Return the tokens of a statement, without comments. Adjacent strings become one token.

    Raises:
        UnreadableError: a string, a quoted name or a comment is not closed.
    """
    pattern, found = _pattern(sql_mode, mariadb), list[Token]()
    at = depth = 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            raise UnreadableError(f"a string, name or comment is not closed: {text[at : at + 20]!r}")
        kind, raw = str(match.lastgroup), match[0]
        if kind == "open":
            depth += 1
        elif kind == "close" and depth:
            depth -= 1
        elif kind == "close":
            found += [Token("symbol", "*"), Token("symbol", "/")]
        elif kind not in {"space", "comment"}:
            _append(found, kind, raw, sql_mode)
        at = match.end()
    if depth:
        raise UnreadableError("a comment is not closed")
    return found


def mark_strings(text: str, sql_mode: int, mariadb: bool, fits: Callable[[str, bool], bool], unknown: str = "") -> str:
    """Return the statement with UNKNOWN for each character of its strings that does not fit.

    `fits` also gets whether the string has an introducer, such as `_latin1'a'` or `N'a'`. Of an escape, it gets the
    characters that the escape stands for. Characters of `unknown` are replaced outside strings and comments.
    """
    pattern, found, at, before = _pattern(sql_mode, mariadb), list[str](), 0, ""
    units = _CHARACTER if sql_mode & NO_BACKSLASH_ESCAPES else _UNIT
    others = dict.fromkeys(map(ord, unknown), UNKNOWN)
    while match := pattern.match(text, at):
        raw, kind = match[0], match.lastgroup
        if kind == "string":
            national = raw[0] in "nN"
            introduced, start = national or before.startswith("_"), 1 + national
            marked = (_marked(one, introduced, fits) for one in units.findall(raw[start:-1]))
            raw = raw[:start] + "".join(marked) + raw[-1]
        elif others and kind in {"name", "word", "symbol"}:
            raw = raw.translate(others)
        found.append(raw)
        before = raw if kind not in {"space", "comment"} else before
        at = match.end()
    return "".join(found) + text[at:]


def _marked(unit: str, introduced: bool, fits: Callable[[str, bool], bool]) -> str:
    """Return a character or an escape of a string, with UNKNOWN in place of what does not fit."""
    escape, character = unit[:-1], unit[-1]
    stands_for = _ESCAPES.get(character, character) if escape else character
    return unit if all(fits(one, introduced) for one in stands_for) else escape + UNKNOWN


def _pattern(sql_mode: int, mariadb: bool) -> re.Pattern[str]:
    plain = bool(sql_mode & NO_BACKSLASH_ESCAPES)
    single, double = (r"(?:[^']|'')", r'(?:[^"]|"")') if plain else (r"(?:[^'\\]|''|\\.)", r'(?:[^"\\]|""|\\.)')
    ansi = bool(sql_mode & ANSI_QUOTES)
    form = _FORM.format(
        executable="M?!" if mariadb else "!",
        single=single,
        double_string="" if ansi else f'| "{double}*"',
        double_name='| "(?:[^"]|"")*"' if ansi else "",
    )
    return re.compile(form, re.DOTALL | re.VERBOSE)


def _append(found: list[Token], kind: str, raw: str, sql_mode: int) -> None:
    if kind == "name":
        quote = raw[0]
        found.append(Token("name", raw[1:-1].replace(quote * 2, quote)))
    elif kind == "string":
        value = _unescaped(raw.lstrip("nN"), bool(sql_mode & NO_BACKSLASH_ESCAPES))
        before = found.pop().text if found and found[-1].kind == "string" else ""
        found.append(Token("string", before + value))
    elif kind in {"hex", "bits"}:
        found.append(Token(kind, raw[2:].rstrip("'")))
    elif kind == "number" and found and found[-1].word == ".":
        # A name never consists of digits only.
        if raw.isdecimal():
            found[-1] = Token("number", f"0.{raw}")
        else:
            found.append(Token("word", raw))
    elif kind == "word":
        found.append(Token(kind, raw.replace(_SPACE_OR_LETTER, UNKNOWN)))
    else:
        found.append(Token(kind, raw))


def _unescaped(raw: str, plain: bool) -> str:
    quote, inner = raw[0], raw[1:-1]
    if plain:
        return inner.replace(quote * 2, quote)
    return _ESCAPED[quote].sub(lambda found: quote if found[1] is None else _ESCAPES.get(found[1], found[1]), inner)
