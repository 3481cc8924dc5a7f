"""XA transactions in the log: XA_PREPARE events, and the later XA COMMIT and XA ROLLBACK statements.

Formats: MySQL source documentation, "XA_PREPARE_LOG_EVENT": one phase 1, format id 4, lengths of the two parts of the
identifier 4 and 4, the parts. Servers log the statements as `XA COMMIT X'<hex>',X'<hex>',<format id>`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from loader.binlog.byte_cursor import Cursor
from loader.errors import BinlogFormatError

_DECISION = re.compile(r"XA (COMMIT|ROLLBACK) X'([0-9A-Fa-f]*)',X'([0-9A-Fa-f]*)',(\d+)\s*")


class Prepare(NamedTuple):
    """The end of the first phase of an XA transaction, or of all of it (`one_phase`). `xid`: as XA COMMIT takes it."""

    one_phase: bool
    xid: str


class Decision(NamedTuple):
    """The outcome of a prepared XA transaction."""

    commit: bool
    xid: str


def read_prepare(body: bytes) -> Prepare:
    """Parse the body of an XA_PREPARE event, without checksum.

    Raises:
        BinlogFormatError: a length does not fit the event.
    """
    cursor = Cursor(body)
    one_phase, form, first, second = cursor.number(1), cursor.number(4), cursor.number(4), cursor.number(4)
    return Prepare(bool(one_phase), _xid(cursor.take(first).hex(), cursor.take(second).hex(), form))


def read_decision(text: str) -> Decision | None:
    """Parse an XA COMMIT or XA ROLLBACK statement; return None for any other statement.

    Raises:
        BinlogFormatError: the statement has another form than servers write.
    """
    if not text.startswith(("XA COMMIT ", "XA ROLLBACK ")):
        return None
    found = _DECISION.fullmatch(text)
    if not found:
        raise BinlogFormatError("an XA COMMIT or XA ROLLBACK statement has no valid identifier", why=text[:200])
    return Decision(found[1] == "COMMIT", _xid(found[2].lower(), found[3].lower(), int(found[4])))


def _xid(first: str, second: str, form: int) -> str:
    return f"X'{first}',X'{second}',{form}"
