"""QUERY events that are not transaction control: the statement, how it was to be read, and where it stands.

Format: MySQL internals, "QUERY_EVENT": thread 4, execution time 4, length of the database name 1, error code 2, length
of the status variables 2, the variables, the name and a NUL, the statement. EXECUTE_LOAD_QUERY has 13 bytes more before
the variables: file number 4, where the file's name is in the statement 4 and 4, what to do with duplicates 1. A status
variable is a code 1 and its value, whose length depends on the code (mysql/binlog/event/statement_events.h).
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
    """A statement of the log; `seqno` is its transaction's. `with_rows`: that holds rows of captured tables too.

    `beside`: the names of these tables, in order, only for a ROLLBACK. `sql_mode`: the bits that the server's
    documentation gives it. `server_charset`: that a database gets for which its statement names none; empty when the
    log does not say. `skipped`: its transaction is, whose rows are not staged.
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


class Query(NamedTuple):
    """What a QUERY event says of its statement; `sql_mode` is 0, `server_charset` empty when it does not say."""

    database: str
    text: str
    sql_mode: int
    server_charset: str


def read_query(kind: int, body: bytes) -> Query:
    """A QUERY or EXECUTE_LOAD_QUERY event, from its body without checksum.

    Raises:
        BinlogFormatError: lengths that do not fit.
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
    """The values of the first status variables: both servers write those that are used here before all that are not."""
    found = {}
    while cursor.remaining and (code := cursor.number(1)) in _SIZES.keys() | _LENGTH_FIRST:
        found[code] = cursor.take(cursor.number(1) if code in _LENGTH_FIRST else _SIZES[code])
    return found


def _text(raw: bytes, charsets: bytes) -> str:
    """The statement, which is in the client's character set; U+FFFD for bytes that this does not have."""
    charset = charset_of(int.from_bytes(charsets[:2], "little"))
    try:
        return decode_text("utf8mb4" if raw.isascii() or not charsets or charset == "binary" else charset, raw)
    except (UnicodeDecodeError, LookupError):
        return raw.decode("utf-8", "replace")
