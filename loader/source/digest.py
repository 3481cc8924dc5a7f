"""A digest of a table's definition, to notice that the table was altered."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from pymysql.connections import Connection

from loader.model.table import TableName
from loader.source.schemas import quote_name

_DEFINITION = re.compile(
    rb"(?P<quoted>`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*')"
    rb"|AUTO_INCREMENT=\d+ ?"
    rb"|\n(?:/\*!50\d00)? PARTITION BY .*",
    re.DOTALL,
)
"""What is kept as it is, and what is left out: the next number, and the partitions, which come last."""


def definition_digest(connection: Connection[Any], name: TableName) -> str:
    """Return the SHA-256 of a table's SHOW CREATE TABLE in hex, without its next AUTO_INCREMENT and its partitions.

    It covers what a key is compared by: order of columns, collations, labels, indexes and their names. Partitions come
    and go every day on some servers, and what that does to rows is in the log. Both servers show `?` for a character of
    four bytes in a label, so that a change of only such characters is not seen here.

    Raises:
        MySQLError: as the driver has it; also where there is no such table.
    """
    return hashlib.sha256(strip_definition(_show_create(connection, name))).hexdigest()


def strip_definition(definition: bytes) -> bytes:
    """Return a definition without its next AUTO_INCREMENT and its partitions."""
    return _DEFINITION.sub(lambda found: found["quoted"] or b"", definition)


def _show_create(connection: Connection[Any], name: TableName) -> bytes:
    """Return the bytes as they are sent: in MariaDB the default of a VARBINARY is written as it is, and is no text."""
    unicode, connection.use_unicode = connection.use_unicode, False
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SHOW CREATE TABLE {quote_name(name.schema)}.{quote_name(name.table)}")
            rows = cursor.fetchall()
    finally:
        connection.use_unicode = unicode
    return bytes(rows[0][1])
