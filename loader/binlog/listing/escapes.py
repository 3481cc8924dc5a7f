r"""Writes the content of quoted staged fields for a terminal or for JSON.

Both hide characters that act on a terminal, as loader.visible_text does. Text keeps the escapes of the staging
dialect, except `\0`, which becomes `\x00`. JSON has its own escapes. An escape has up to six times the bytes of its
character.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import load64, store64
from loader.binlog.values.digits import put_hex
from loader.binlog.values.quoted_text import BACKSLASH, QUOTE, sequence_length
from loader.visible_text import hides

WIDEST = 6
"""Most bytes of output per byte of a staged field."""

_WORD = 8
_COMMA = np.uint8(44)
_N, _R, _T, _U, _X, _ZERO = (np.uint8(ord(letter)) for letter in "nrtux0")
_U0, _U1, _U7, _U56 = (np.uint64(number) for number in (0, 1, 7, 56))
_ONES = np.uint64(0x0101010101010101)
_TOP = np.uint64(0x8080808080808080)
_PAST_CONTROLS = np.uint64(0x6060606060606060)  # sets the top bit of bytes from 32 on
_PAST_ZERO = np.uint64(0x7F7F7F7F7F7F7F7F)  # sets the top bit of bytes other than 0
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_COMMAS = np.uint64(0x2C2C2C2C2C2C2C2C)


def _hidden() -> NDArray[np.uint8]:
    """Return for each character below U+2100 whether it is hidden. Surrogates are no valid UTF-8."""
    return np.array([hides(code) for code in range(0x2100)], np.uint8)


def _json_letters() -> NDArray[np.uint8]:
    """Return the letter of the JSON escape of each control character; `u` for those without one of their own."""
    letters = np.full(32, ord("u"), np.uint8)
    letters[[8, 9, 10, 12, 13]] = list(b"btnfr")
    return letters


_HIDDEN = _hidden()
_JSON_LETTERS = _json_letters()


@part
def _run_length(ends: np.uint64) -> int:
    """Return the number of bytes before the first one whose top bit is set in `ends`; 8 if none is."""
    if ends == _U0:
        return _WORD
    lowest = ends & (_U0 - ends)
    return int((((lowest - _U1) & _ONES) * _ONES) >> _U56) - 1


@part
def plain_length(word: np.uint64) -> int:
    """Return how many of the first bytes of a word are printable ASCII, and neither quote nor backslash."""
    fine = (word + _PAST_CONTROLS) & ((word ^ _QUOTES) + _PAST_ZERO) & ((word ^ _BACKSLASHES) + _PAST_ZERO)
    fine &= ((word ^ _PAST_ZERO) + _PAST_ZERO) & ~word
    return _run_length(~fine & _TOP)


@part
def put_bare(out: Bytes, at: int, buf: Bytes, pos: int) -> tuple[int, int]:
    """Copy a bare field, which is ASCII. Return the positions behind it in both arrays."""
    while True:
        word = load64(buf, pos)
        store64(out, at, word)
        size = _run_length(~((word + _PAST_CONTROLS) & ((word ^ _COMMAS) + _PAST_ZERO)) & _TOP)
        at += size
        pos += size
        if size < _WORD:
            return at, pos


@part
def _put_code(out: Bytes, at: int, code: np.int64, json: bool) -> int:
    r"""Write a hidden character as `\x85` or `\u0085`."""
    out[at] = BACKSLASH
    if code < 0x100 and not json:
        out[at + 1] = _X
        return put_hex(out, at + 2, np.uint8(code))
    out[at + 1] = _U
    at = put_hex(out, at + 2, np.uint8(code >> 8))
    return put_hex(out, at, np.uint8(code & 0xFF))


@part
def _put_control(out: Bytes, at: int, byte: np.uint8, json: bool) -> int:
    r"""Write an ASCII control character. Texts have `\t`, `\n` and `\r` as the only short escapes."""
    letter = _JSON_LETTERS[byte] if byte < 32 else _U
    if letter == _U or not (json or letter == _T or letter == _N or letter == _R):
        return _put_code(out, at, np.int64(byte), json)
    out[at] = BACKSLASH
    out[at + 1] = letter
    return at + 2


@part
def _put_wide(out: Bytes, at: int, buf: Bytes, pos: int, json: bool) -> tuple[int, int]:
    """Write a character above ASCII. Return the positions behind it in both arrays."""
    lead = buf[pos]
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    code = np.int64(0x2100)
    if size == 2:
        code = (np.int64(lead) & 0x1F) << 6 | (np.int64(buf[pos + 1]) & 0x3F)
    elif lead == 0xE2:
        code = 0x2000 | (np.int64(buf[pos + 1]) & 0x3F) << 6 | (np.int64(buf[pos + 2]) & 0x3F)
    if code < 0x2100 and _HIDDEN[code]:
        return _put_code(out, at, code, json), pos + size
    for i in range(size):
        out[at + i] = buf[pos + i]
    return at + size, pos + size


@part
def _put_escape(out: Bytes, at: int, letter: np.uint8, json: bool) -> int:
    """Write the character of an escape of the staging dialect. Return BAD for an unknown escape."""
    if letter == _ZERO:
        return _put_code(out, at, np.int64(0), json)
    if letter != _N and letter != _R and letter != BACKSLASH:
        return BAD
    out[at] = BACKSLASH
    out[at + 1] = letter
    return at + 2


@part
def put_statement(out: Bytes, at: int, buf: Bytes, pos: int, end: int, json: bool) -> int:
    """Write buf[pos:end], a text that is not staged. Return BAD if it is not UTF-8."""
    while pos < end:
        byte = buf[pos]
        if byte >= 0x80:
            if sequence_length(buf, pos, end) == 0:
                return BAD
            at, pos = _put_wide(out, at, buf, pos, json)
            continue
        if byte < 32 or byte == 127:
            at = _put_control(out, at, byte, json)
        else:
            if byte == BACKSLASH or (json and byte == QUOTE):
                out[at] = BACKSLASH
                at += 1
            out[at] = byte
            at += 1
        pos += 1
    return at


@part
def put_content(out: Bytes, at: int, buf: Bytes, pos: int, json: bool, labels: bool) -> tuple[int, int]:
    """Write a quoted field from behind its first quote on, for JSON or for text.

    With `labels`, a comma ends a JSON text and begins the next one. Return the positions behind the field in both
    arrays; BAD for an unknown escape. `buf` has at least 8 bytes behind the field.
    """
    while True:
        if not labels:
            word = load64(buf, pos)
            store64(out, at, word)
            size = plain_length(word)
            at += size
            pos += size
            if size == _WORD:
                continue
        byte = buf[pos]
        if byte == QUOTE:
            if buf[pos + 1] != QUOTE:
                return at, pos + 1
            if json:
                out[at] = BACKSLASH
                at += 1
            out[at] = QUOTE
            at += 1
            pos += 2
        elif byte == BACKSLASH:
            at = _put_escape(out, at, buf[pos + 1], json)
            if at == BAD:
                return BAD, BAD
            pos += 2
        elif byte >= 0x80:
            at, pos = _put_wide(out, at, buf, pos, json)
        elif byte < 32 or byte == 127:
            at = _put_control(out, at, byte, json)
            pos += 1
        elif byte == _COMMA and labels:
            out[at] = QUOTE
            out[at + 1] = _COMMA
            out[at + 2] = np.uint8(32)
            out[at + 3] = QUOTE
            at += 4
            pos += 1
        else:
            out[at] = byte
            at += 1
            pos += 1
