"""Writes one staged field as a listing shows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.listing.escapes import put_bare, put_content
from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import load64, store64
from loader.binlog.values.digits import put_padded, put_unsigned
from loader.binlog.values.quoted_text import BACKSLASH, QUOTE

BARE, INTEGER, REAL, HEX, QUOTED, STRING, LABELS = range(7)
"""How a listing shows a column.

BARE, HEX, QUOTED: in text: as staged; after `0x`; in single quotes.
INTEGER, REAL, STRING, LABELS: in JSON: an integer, a float as Python writes it, a text, a list of texts.
"""

_APOSTROPHE, _MINUS, _DOT, _ZERO, _E, _PLUS, _COMMA, _OPEN, _CLOSE, _X, _NEWLINE = (
    np.uint8(ord(letter)) for letter in "'-.0e+,[]x\n"
)


def padded(text: bytes) -> NDArray[np.uint8]:
    """Return a text for put_bytes, which reads up to 7 bytes behind it."""
    return np.frombuffer(text + bytes(8), np.uint8).copy()


_TEXT_NULL = padded(b"NULL")
_JSON_NULL = padded(b"null")
_FIXED_LEAST, _FIXED_MOST = -4, 16
"""Python writes floats without exponent if the exponent of their first digit is within this range."""


@part
def put_bytes(out: Bytes, at: int, source: Bytes, start: int, end: int) -> int:
    """Copy source[start:end] in words of 8 bytes. Up to 7 bytes behind it are read, and written behind the copy."""
    for i in range(start, end, 8):
        store64(out, at + i - start, load64(source, i))
    return at + end - start


@part
def _put_laid_out(out: Bytes, at: int, digits: np.uint64, size: int, first: int) -> int:
    """Write a number of `size` digits as Python writes a float. `first`: exponent of the first digit."""
    text = at + 24  # room in which the digits stand before they are laid out
    put_unsigned(out, text, digits)
    if not _FIXED_LEAST <= first < _FIXED_MOST:
        out[at] = out[text]
        at += 1
        if size > 1:
            out[at] = _DOT
            at = put_bytes(out, at + 1, out, text + 1, text + size)
        out[at] = _E
        out[at + 1] = _MINUS if first < 0 else _PLUS
        return put_padded(out, at + 2, np.int64(abs(first)), 3 if abs(first) > 99 else 2)
    if first < 0:
        out[at] = _ZERO
        out[at + 1] = _DOT
        at = put_padded(out, at + 2, np.int64(0), -first - 1)
        return put_bytes(out, at, out, text, text + size)
    whole = first + 1
    at = put_bytes(out, at, out, text, text + min(size, whole))
    at = put_padded(out, at, np.int64(0), max(whole - size, 0))
    out[at] = _DOT
    if size <= whole:
        out[at + 1] = _ZERO
        return at + 2
    return put_bytes(out, at + 1, out, text + whole, text + size)


@part
def _put_real(out: Bytes, at: int, buf: Bytes, pos: int) -> tuple[int, int]:
    """Write a staged FLOAT or DOUBLE as Python writes the float of the same digits."""
    if buf[pos] == _MINUS:
        out[at] = _MINUS
        at += 1
        pos += 1
    digits, size, places, exponent = np.uint64(0), 0, 0, 0
    fraction = False
    while buf[pos] != _COMMA and buf[pos] != _NEWLINE and buf[pos] != _E:
        if buf[pos] == _DOT:
            fraction = True
        else:
            digits = digits * np.uint64(10) + np.uint64(buf[pos] - _ZERO)
            size += size > 0 or buf[pos] != _ZERO
            places += fraction
        pos += 1
    if buf[pos] == _E:
        pos += 1
        negative = buf[pos] == _MINUS
        pos += negative
        while _ZERO <= buf[pos] <= _ZERO + 9:
            exponent = exponent * 10 + int(buf[pos] - _ZERO)
            pos += 1
        exponent = -exponent if negative else exponent
    first = size - 1 - places + exponent
    while size > 1 and digits % np.uint64(10) == np.uint64(0):
        digits //= np.uint64(10)
        size -= 1
    if size == 0:
        return _put_laid_out(out, at, np.uint64(0), 1, 0), pos
    return _put_laid_out(out, at, digits, size, first), pos


@part
def _put_opening(out: Bytes, at: int, kind: int) -> int:
    out[at] = _ZERO if kind == HEX else _APOSTROPHE if kind == QUOTED else QUOTE if kind == STRING else _OPEN
    out[at + 1] = _X if kind == HEX else QUOTE
    return at + (2 if kind == HEX or kind == LABELS else 1)


@part
def _put_closing(out: Bytes, at: int, kind: int) -> int:
    out[at] = _APOSTROPHE if kind == QUOTED else QUOTE
    out[at + 1] = _CLOSE
    return at + (0 if kind == HEX else 2 if kind == LABELS else 1)


@part
def _put_enclosed(out: Bytes, at: int, buf: Bytes, pos: int, kind: int, json: bool) -> tuple[int, int]:
    """Write a field of a kind that has quotes or a prefix. The empty set is an empty list."""
    quoted = buf[pos] == QUOTE
    if kind == LABELS and quoted and buf[pos + 1] == QUOTE and buf[pos + 2] != QUOTE:
        out[at] = _OPEN
        out[at + 1] = _CLOSE
        return at + 2, pos + 2
    at = _put_opening(out, at, kind)
    if quoted:
        at, pos = put_content(out, at, buf, pos + 1, json, kind == LABELS)
        if at == BAD:
            return BAD, BAD
    else:
        at, pos = put_bare(out, at, buf, pos)
    return _put_closing(out, at, kind), pos


@part
def put_field(out: Bytes, at: int, buf: Bytes, pos: int, kind: int, json: bool) -> tuple[int, int]:
    """Write the staged field at `pos`. Return the positions behind it in both arrays; BAD for an unreadable value."""
    if buf[pos] == BACKSLASH:  # only NULL is bare and begins with a backslash
        return put_bytes(out, at, _JSON_NULL if json else _TEXT_NULL, 0, 4), pos + 2
    quoted = buf[pos] == QUOTE
    if quoted and (kind < HEX or (buf[pos + 1] == BACKSLASH and buf[pos + 2] == _X)):
        return BAD, BAD
    if kind >= HEX:
        return _put_enclosed(out, at, buf, pos, kind, json)
    if kind == REAL:
        return _put_real(out, at, buf, pos)
    if kind == INTEGER:
        while buf[pos] == _ZERO and _ZERO <= buf[pos + 1] <= _ZERO + 9:  # a YEAR has leading zeros
            pos += 1
    return put_bare(out, at, buf, pos)
