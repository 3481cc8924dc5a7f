"""QUERY events that are not transaction control: the statement, its default database and where it stands.

Format: MySQL internals, "QUERY_EVENT": thread 4, execution time 4, length of the database name 1, error code 2, length
of the status variables 2, the variables, the name and a NUL, the statement. EXECUTE_LOAD_QUERY has 13 bytes more before
the variables: file number 4, where the file's name is in the statement 4 and 4, what to do with duplicates 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from loader.binlog.constants import EXECUTE_LOAD_QUERY
from loader.binlog.wire import Cursor

_LOAD_FIELDS = 13


@dataclass(frozen=True)
class LogStatement:
    """A statement of the log; `seqno` is its transaction's. `beside_rows`: that holds rows of captured tables too."""

    seqno: int
    position: str
    database: str
    text: str
    mariadb: bool
    beside_rows: bool


def read_query(kind: int, body: bytes) -> tuple[str, str]:
    """Default database and text of a QUERY or EXECUTE_LOAD_QUERY event, from its body without checksum.

    Raises:
        BinlogFormatError: lengths that do not fit.
    """
    cursor = Cursor(body)
    cursor.take(8)
    name = cursor.number(1)
    cursor.take(2)
    variables = cursor.number(2)
    cursor.take(variables + (_LOAD_FIELDS if kind == EXECUTE_LOAD_QUERY else 0))
    database = cursor.text(name)
    cursor.take(1)
    # In the client's character set, which only comments and literals show: `\xe9` for what is not UTF-8.
    return database, cursor.take(cursor.left).decode("utf-8", "backslashreplace")
