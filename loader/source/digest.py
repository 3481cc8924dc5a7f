"""A digest of a table's definition, which reveals that the table was altered."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from pymysql.connections import Connection

from loader.model.table import TableName
from loader.source.schemas import quote_table

_DEFINITION = re.compile(
    rb"(?P<quoted>`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*')"
    rb"|AUTO_INCREMENT=\d+ ?"
    rb"|\n(?:/\*!50\d00)? PARTITION BY .*",
    re.DOTALL,
)
"""Matches quoted text, which is kept, and what is removed: the next AUTO_INCREMENT, and the partitions at the end."""


def definition_digest(connection: Connection[Any], name: TableName) -> str:
    """Return the SHA-256 of a table's SHOW CREATE TABLE in hex, without its next AUTO_INCREMENT and its partitions.

    It covers everything that affects key comparisons: order of columns, collations, labels, indexes and their names.
    Partitions are excluded, because some servers change them daily, and the log contains what that does to rows. Both
    servers show `?` for a four-byte character in a label. So the digest does not change if only these characters do.

    Raises:
        MySQLError: from the driver; also if there is no such table.
    """
    return hashlib.sha256(strip_definition(show_create(connection, name))).hexdigest()


def strip_definition(definition: bytes) -> bytes:
    """Return a definition without its next AUTO_INCREMENT and its partitions."""
    return _DEFINITION.sub(lambda found: found["quoted"] or b"", definition)


def show_create(connection: Connection[Any], name: TableName) -> bytes:
    """Return SHOW CREATE TABLE as it is sent. MariaDB writes the default of a VARBINARY as raw bytes, not as UTF-8.

    Unlike information_schema, MariaDB shows it to users that can only read the table.

    Raises:
        MySQLError: from the driver; also if there is no such table.
    """
    unicode, connection.use_unicode = connection.use_unicode, False
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SHOW CREATE TABLE {quote_table(name)}")
            rows = cursor.fetchall()
    finally:
        connection.use_unicode = unicode
    return bytes(rows[0][1])
