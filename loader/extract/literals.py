"""The string literals of a statement, which the server converts to the character set of the connection."""

from __future__ import annotations

from loader.binlog.events.statement import Query
from loader.binlog.values.codepages import UNICODE, is_encodable
from loader.schema.lexer import mark_strings

_OTHER_ASCII, _NO_ASCII = "swe7", "@[\\]^`{|}~"
"""A character set whose bytes for these ASCII characters are other characters. A backslash still escapes."""


def converted_text(query: Query, *, mariadb: bool) -> str:
    """Return the statement with U+FFFD for characters of string literals that the server may have read otherwise.

    For characters that it cannot convert, it stores a question mark. Names are not converted. See "Character Set
    Introducers" and "Connection Character Sets and Collations" in the MySQL manual. MariaDB also converts literals with
    an introducer in a DEFAULT. A literal with an introducer has the bytes of the client, whatever its character set.
    """
    if query.literals in UNICODE:  # a binary column stores two or four bytes for each character
        return mark_strings(query.text, query.sql_mode, mariadb, lambda _one, _introduced: False)
    certain = not query.literals and query.is_utf8
    if certain or (query.text.isascii() and query.literals != _OTHER_ASCII):
        return query.text

    def fits(one: str, introduced: bool) -> bool:
        if query.literals == _OTHER_ASCII and one in _NO_ASCII:
            return False
        return is_encodable(query.literals or "utf8mb4", one) and (query.is_utf8 or not introduced or one.isascii())

    # In names they are letters of the client's character set, although a backtick still quotes.
    unknown = _NO_ASCII.replace("`", "") if query.literals == _OTHER_ASCII else ""
    return mark_strings(query.text, query.sql_mode, mariadb, fits, unknown)
