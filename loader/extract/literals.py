"""The string literals of a statement, which the server converts to the character set of the connection."""

from __future__ import annotations

from loader.binlog.events.statement import Query
from loader.binlog.values.codepages import is_encodable
from loader.schema.lexer import mark_strings


def converted_text(query: Query, *, mariadb: bool) -> str:
    """Return the statement with U+FFFD for characters of string literals that are lost in the conversion.

    The server stores a question mark instead. Names are not converted. See "Character Set Introducers" and "Connection
    Character Sets and Collations" in the MySQL manual. MariaDB also converts literals with an introducer in a DEFAULT.
    """
    if not query.literals or query.text.isascii():
        return query.text
    return mark_strings(query.text, query.sql_mode, mariadb, lambda one: is_encodable(query.literals, one))
