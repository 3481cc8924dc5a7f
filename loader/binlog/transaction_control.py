"""Transaction boundaries: what a QUERY event does to its transaction, and the commit time of a GTID event."""

from __future__ import annotations

import numpy as np

from loader.binlog.constants import HEADER
from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.digits import little

STATEMENT, BEGINS, COMMITS, ROLLS_BACK, ENDS_WORK, DECIDES, STRANGE, CUT = range(8)
"""What a QUERY event is: any other statement; BEGIN or XA START; COMMIT; ROLLBACK; XA END; XA COMMIT or XA ROLLBACK;
another XA statement; a damaged event."""

_U0 = np.uint64(0)
_BEGIN, _COMMIT, _ROLLBACK, _XA, _XA_START, _XA_END, _XA_COMMIT, _XA_ROLLBACK = (
    np.frombuffer(word, np.uint8).copy()
    for word in (b"BEGIN", b"COMMIT", b"ROLLBACK", b"XA ", b"XA START ", b"XA END ", b"XA COMMIT ", b"XA ROLLBACK ")
)


@part
def same(buf: Bytes, start: int, end: int, word: Bytes) -> bool:
    """Return whether buf[start:end] is the word."""
    if end - start != len(word):
        return False
    for i in range(len(word)):
        if buf[start + i] != word[i]:
            return False
    return True


@part
def starts_with(buf: Bytes, start: int, end: int, word: Bytes) -> bool:
    """Return whether buf[start:end] starts with the word."""
    return start + len(word) <= end and same(buf, start, start + len(word), word)


@part
def control_of(buf: Bytes, start: int, end: int) -> int:
    """Return what a QUERY event does to its transaction. Servers log XA statements in one spelling."""
    body = start + HEADER
    if body + 13 > end:
        return CUT
    text = body + 13 + np.int64(buf[body + 8]) + np.int64(little(buf, body + 11, 2)) + 1
    if text > end:
        return CUT
    if same(buf, text, end, _BEGIN) or starts_with(buf, text, end, _XA_START):
        return BEGINS
    if same(buf, text, end, _COMMIT):
        return COMMITS
    if same(buf, text, end, _ROLLBACK):
        return ROLLS_BACK
    if not starts_with(buf, text, end, _XA):
        return STATEMENT
    if starts_with(buf, text, end, _XA_END):
        return ENDS_WORK
    if starts_with(buf, text, end, _XA_COMMIT) or starts_with(buf, text, end, _XA_ROLLBACK):
        return DECIDES
    return STRANGE


@part
def commit_time(buf: Bytes, start: int, end: int) -> np.int64:
    """Return this server's commit time from a GTID event, in microseconds; 0 before MySQL 8.0.1, which has none."""
    at = start + HEADER + 42
    if at + 7 > end:
        return np.int64(0)
    return np.int64(little(buf, at, 7) & np.uint64((1 << 55) - 1))


@part
def varint(buf: Bytes, pos: int, end: int) -> tuple[int, np.uint64]:
    """Return the position behind a variable-length integer (0 if truncated), and the integer.

    Format: mysql::serialization. The first byte has a leading 1-bit for each byte that follows.
    """
    if pos >= end:
        return 0, _U0
    first = buf[pos]
    more = 0
    while more < 8 and first >> np.uint8(more) & 1:
        more += 1
    if pos + 1 + more > end:
        return 0, _U0
    if more == 8:
        return pos + 9, little(buf, pos + 1, 8)
    return pos + 1 + more, little(buf, pos, more + 1) >> np.uint64(more + 1)


@part
def tagged_commit_time(buf: Bytes, start: int, end: int) -> np.int64:
    """Return this server's commit time from a GTID_TAGGED event, in microseconds; -1 if the event is damaged.

    Format: the server's `Gtid_event` ("FORMAT_DESCRIPTION" of its fields): version, size, last field that a reader must
    know, then fields of id and value: 0 flags, 1 UUID (16 numbers), 2 number, 3 tag (length, bytes), 4 last committed,
    5 sequence number, 6 commit time.
    """
    pos = start + HEADER
    value = _U0
    for _ in range(3):
        pos, value = varint(buf, pos, end)
        if pos == 0:
            return np.int64(-1)
    while True:
        pos, field = varint(buf, pos, end)
        if pos == 0 or field > np.uint64(6):
            return np.int64(-1)
        for _ in range(16 if field == np.uint64(1) else 1):
            pos, value = varint(buf, pos, end)
            if pos == 0:
                return np.int64(-1)
        if field == np.uint64(6):
            return np.int64(value & np.uint64((1 << 55) - 1))
        if field == np.uint64(3):
            if value > np.uint64(end - pos):
                return np.int64(-1)
            pos += np.int64(value)
