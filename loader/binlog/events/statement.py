"""QUERY events that are not transaction control: the statement, the settings it ran with, and its position.

Format: MySQL internals, "QUERY_EVENT": thread 4, execution time 4, length of the database name 1, error code 2, length
of the status variables 2, the variables, the database name and a NUL, the statement. EXECUTE_LOAD_QUERY has 13 more
bytes before the variables: file number 4, start and end of the file name in the statement 4 and 4, handling of
duplicates 1. A status variable is a code 1 and a value, whose length depends on the code
(mysql/binlog/event/statement_events.h).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import EXECUTE_LOAD_QUERY
from loader.binlog.values.charsets import charset_of
from loader.binlog.values.codepages import decode_text

_LOAD_FIELDS = 13
_FLAGS2, _SQL_MODE, _AUTO_INCREMENT, _CHARSET, _TIME_ZONE, _CATALOG = 0, 1, 3, 4, 5, 6
_SIZES = {_FLAGS2: 4, _SQL_MODE: 8, _AUTO_INCREMENT: 4, _CHARSET: 6}
_LENGTH_FIRST = {_TIME_ZONE, _CATALOG}


@dataclass(frozen=True)
class LogStatement:
    """A statement of the log.

    Attributes:
        seqno: of its transaction.
        position: where it is in the log, `binlog.000054:123`; for a final ROLLBACK, the start of its transaction.
        database: the default database it ran with.
        text: the statement.
        sql_mode: bits of the sql_mode it ran with, see `Query`.
        mariadb: a MariaDB server ran it.
        with_rows: its transaction also has row events of captured tables.
        server_charset: character set of a database created without one; empty if the log does not say.
        skipped: its transaction is skipped: its rows are not staged.
        read_before: it was read from the server of an older generation.
        row_tables: names of the captured tables with rows in its transaction, sorted; only for a ROLLBACK.
    """

    seqno: int
    position: str
    database: str
    text: str
    sql_mode: int
    mariadb: bool
    with_rows: bool
    server_charset: str = ""
    skipped: bool = False
    row_tables: tuple[str, ...] = ()
    read_before: bool = False


class Query(NamedTuple):
    """The statement of a QUERY event, and the settings it ran with.

    Attributes:
        database: the default database.
        text: the statement.
        sql_mode: bits as in `Query_log_event::sql_mode`; 0 if the event does not say.
        server_charset: of `collation_server`; empty if the event does not say.
    """

    database: str
    text: str
    sql_mode: int
    server_charset: str


def read_query(kind: int, body: bytes) -> Query:
    """Parse the body of a QUERY or EXECUTE_LOAD_QUERY event (`kind`), without checksum.

    Raises:
        BinlogFormatError: a length does not fit the event.
    """
    cursor = Cursor(body)
    cursor.take(8)
    name = cursor.number(1)
    cursor.take(2)
    variables = cursor.number(2)
    cursor.take(_LOAD_FIELDS if kind == EXECUTE_LOAD_QUERY else 0)
    found = _variables(Cursor(cursor.take(variables)))
    database = cursor.text(name)
    cursor.take(1)
    charsets = found.get(_CHARSET, b"")
    text = _text(cursor.take(cursor.remaining), charsets)
    server = charset_of(int.from_bytes(charsets[4:6], "little")) if charsets else ""
    return Query(database, text, int.from_bytes(found.get(_SQL_MODE, b""), "little"), server)


def _variables(cursor: Cursor) -> dict[int, bytes]:
    """Return the first status variables. Both servers write the ones needed here before all others."""
    found = {}
    while cursor.remaining and (code := cursor.number(1)) in _SIZES.keys() | _LENGTH_FIRST:
        found[code] = cursor.take(cursor.number(1) if code in _LENGTH_FIRST else _SIZES[code])
    return found


def _text(raw: bytes, charsets: bytes) -> str:
    """Decode the statement from the client's character set, with U+FFFD for invalid bytes."""
    charset = charset_of(int.from_bytes(charsets[:2], "little"))
    try:
        return decode_text("utf8mb4" if raw.isascii() or not charsets or charset == "binary" else charset, raw)
    except (UnicodeDecodeError, LookupError):
        return raw.decode("utf-8", "replace")
