"""QUERY events that are not transaction control: the statement, its default database and where it stands.

Format: MySQL internals, "QUERY_EVENT": thread 4, execution time 4, length of the database name 1, error code 2, length
of the status variables 2, the variables, the name and a NUL, the statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from loader.binlog.wire import Cursor


@dataclass(frozen=True)
class LogStatement:
    """A statement of the log; `seqno` is its transaction's."""

    seqno: int
    position: str
    database: str
    text: str
    mariadb: bool


def read_statement(body: bytes, seqno: int, position: str, mariadb: bool) -> LogStatement:
    """Parse the body of a QUERY event, from behind its header, without checksum.

    Raises:
        BinlogFormatError: lengths that do not fit.
    """
    cursor = Cursor(body)
    cursor.take(8)
    name = cursor.number(1)
    cursor.take(2)
    cursor.take(cursor.number(2))
    database = cursor.text(name)
    cursor.take(1)
    # In the client's character set, which only comments and literals show: `\xe9` for what is not UTF-8.
    text = cursor.take(cursor.left).decode("utf-8", "backslashreplace")
    return LogStatement(seqno, position, database, text, mariadb)
