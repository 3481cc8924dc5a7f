"""Writes MariaDB's UUID, INET4 and INET6 as the text that the server shows.

Format: the bytes of the value in network order, without trailing zero bytes. Text: the server's `Inet6::to_string`
(sql/sql_type_inet.cc). The first of the longest runs of zero words becomes `::`, even a run of one word. The last four
bytes become an IPv4 address after `::` and after `::ffff:`.
"""

from __future__ import annotations

import numpy as np

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.digits import put_hex, put_unsigned
from loader.binlog.values.quoted_text import QUOTE

_DOT, _COLON, _MINUS = np.uint8(46), np.uint8(58), np.uint8(45)
_WORDS = 8
_MAPPED = 0xFFFF


@part
def _byte(buf: Bytes, pos: int, end: int) -> np.uint8:
    return buf[pos] if pos < end else np.uint8(0)


@part
def put_uuid(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    """Write a quoted field; return BAD for more than 16 bytes."""
    if end - pos > 16:
        return BAD
    out[at] = QUOTE
    at += 1
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            out[at] = _MINUS
            at += 1
        at = put_hex(out, at, _byte(buf, pos + i, end))
    out[at] = QUOTE
    return at + 1


@part
def _put_four(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    for i in range(4):
        if i:
            out[at] = _DOT
            at += 1
        at = put_unsigned(out, at, np.uint64(_byte(buf, pos + i, end)))
    return at


@part
def put_inet4(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    """Write a quoted field; return BAD for more than 4 bytes."""
    if end - pos > 4:
        return BAD
    out[at] = QUOTE
    at = _put_four(out, at + 1, buf, pos, end)
    out[at] = QUOTE
    return at + 1


@part
def _word(buf: Bytes, pos: int, end: int, i: int) -> np.int64:
    return np.int64(_byte(buf, pos + 2 * i, end)) << 8 | np.int64(_byte(buf, pos + 2 * i + 1, end))


@part
def _gap(buf: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Return the first of the longest runs of zero words: its first word and its length."""
    first, most, run = -1, 0, 0
    for i in range(_WORDS):
        run = 0 if _word(buf, pos, end, i) else run + 1
        if run > most:
            first, most = i - run + 1, run
    return first, most


@part
def _put_word(out: Bytes, at: int, word: np.int64) -> int:
    """Write hex digits without leading zeros."""
    started = False
    for shift in (12, 8, 4, 0):
        digit = (word >> shift) & 15
        if digit or started or shift == 0:
            out[at] = np.uint8(digit + (48 if digit < 10 else 87))
            at += 1
            started = True
    return at


@part
def put_inet6(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    """Write a quoted field; return BAD for more than 16 bytes."""
    if end - pos > 16:
        return BAD
    first, count = _gap(buf, pos, end)
    out[at] = QUOTE
    at += 1
    i = 0
    while i < _WORDS:
        if i == first:
            if i == 0:
                out[at] = _COLON
                at += 1
            out[at] = _COLON
            at += 1
            i += count
            continue
        if i == 6 and first == 0 and (count == 6 or (count == 5 and _word(buf, pos, end, 5) == _MAPPED)):
            at = _put_four(out, at, buf, pos + 12, end)
            break
        at = _put_word(out, at, _word(buf, pos, end, i))
        i += 1
        if i < _WORDS:
            out[at] = _COLON
            at += 1
    out[at] = QUOTE
    return at + 1
