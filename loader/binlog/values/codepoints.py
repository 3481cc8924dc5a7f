"""Writes text in character sets other than UTF-8 and latin1 as quoted fields, by the tables of `codepages`.

Writers return the position behind the closing quote, or BAD for bytes that are invalid in the character set. They need
3 bytes of output per input byte (2 for UNICODE sets), and 2 for the quotes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.values.codepages import LISTED, PAIRS, UNICODE
from loader.binlog.values.digits import big, little
from loader.binlog.values.quoted_text import QUOTE, put_escaped

Codes = NDArray[np.uint16]

TWO, SHIFTED_THREE, FOUR = range(3)
"""The longest byte sequence of a character set: two bytes, three bytes that start with 0x8f, or four (gb18030)."""

UCS2, UTF16, UTF16LE, UTF32 = (list(UNICODE).index(name) for name in ("ucs2", "utf16", "utf16le", "utf32"))

_SHIFT = 0x8F
_BEYOND = 15 * 10 * 126 * 10  # gb18030 sequences from 81308130 to before 90308130, which is U+10000


@part
def put_code(out: Bytes, at: int, code: np.int64) -> int:
    """Write a character as escaped UTF-8. The caller refuses surrogates."""
    if code < 0x80:
        return put_escaped(out, at, np.uint8(code))
    if code < 0x800:
        out[at] = np.uint8(0xC0 | (code >> 6))
        out[at + 1] = np.uint8(0x80 | (code & 63))
        return at + 2
    if code < 0x10000:
        out[at] = np.uint8(0xE0 | (code >> 12))
        out[at + 1] = np.uint8(0x80 | ((code >> 6) & 63))
        out[at + 2] = np.uint8(0x80 | (code & 63))
        return at + 3
    out[at] = np.uint8(0xF0 | (code >> 18))
    out[at + 1] = np.uint8(0x80 | ((code >> 12) & 63))
    out[at + 2] = np.uint8(0x80 | ((code >> 6) & 63))
    out[at + 3] = np.uint8(0x80 | (code & 63))
    return at + 4


@part
def put_single(out: Bytes, at: int, buf: Bytes, pos: int, end: int, tables: Codes, first: int) -> int:
    """Write text with one byte per character, by the table at `first`."""
    out[at] = QUOTE
    at += 1
    for i in range(pos, end):
        byte = np.int64(buf[i])
        code = np.int64(tables[first + byte])
        if code == 0 and byte:
            return BAD
        at = put_code(out, at, code)
    out[at] = QUOTE
    return at + 1


@part
def _four(buf: Bytes, pos: int, end: int, tables: Codes, first: int) -> np.int64:
    """Return the character of a four-byte sequence of gb18030, or 0 for an invalid sequence."""
    if pos + 4 > end:
        return np.int64(0)
    a, b = np.int64(buf[pos]) - 0x81, np.int64(buf[pos + 1]) - 0x30
    c, d = np.int64(buf[pos + 2]) - 0x81, np.int64(buf[pos + 3]) - 0x30
    if a < 0 or a > 125 or b < 0 or b > 9 or c < 0 or c > 125 or d < 0 or d > 9:
        return np.int64(0)
    number = ((a * 10 + b) * 126 + c) * 10 + d
    if number < LISTED:
        return np.int64(tables[first + 256 + PAIRS + number])
    code = number - _BEYOND + 0x10000
    return code if 0x10000 <= code <= 0x10FFFF else np.int64(0)


@part
def put_multibyte(out: Bytes, at: int, buf: Bytes, pos: int, end: int, tables: Codes, first: int, longest: int) -> int:
    """Write text with one or more bytes per character, by the table at `first`."""
    out[at] = QUOTE
    at += 1
    while pos < end:
        lead = np.int64(buf[pos])
        code = np.int64(tables[first + lead])
        size = 1
        if code == 0 and lead:
            if lead < 0x80 or pos + 2 > end:
                return BAD
            second = np.int64(buf[pos + 1])
            code = np.int64(tables[first + 256 + (lead - 0x80) * 256 + second])
            size = 2
            if code == 0 and longest == SHIFTED_THREE and lead == _SHIFT and second >= 0x80 and pos + 3 <= end:
                code = np.int64(tables[first + 256 + PAIRS + (second - 0x80) * 256 + np.int64(buf[pos + 2])])
                size = 3
            elif code == 0 and longest == FOUR:
                code = _four(buf, pos, end, tables, first)
                size = 4
            if code == 0:
                return BAD
        at = put_code(out, at, code)
        pos += size
    out[at] = QUOTE
    return at + 1


@part
def put_unicode(out: Bytes, at: int, buf: Bytes, pos: int, end: int, kind: int) -> int:
    """Write text with two or four bytes per unit; return BAD for a surrogate without its other half."""
    unit = 4 if kind == UTF32 else 2
    if (end - pos) % unit:
        return BAD
    out[at] = QUOTE
    at += 1
    while pos < end:
        code = np.int64(little(buf, pos, unit) if kind == UTF16LE else big(buf, pos, unit))
        pos += unit
        if 0xD800 <= code <= 0xDBFF and kind != UCS2 and kind != UTF32 and pos < end:
            low = np.int64(little(buf, pos, 2) if kind == UTF16LE else big(buf, pos, 2))
            if low < 0xDC00 or low > 0xDFFF:
                return BAD
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            pos += 2
        elif 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            return BAD
        at = put_code(out, at, code)
    out[at] = QUOTE
    return at + 1
