r"""Writes strings and bytes as quoted fields of the staging CSV dialect.

Inside quotes, `"` is doubled; backslash, newline, CR and NUL become `\\`, `\n`, `\r`, `\0`. Writers return the position
behind the closing quote, or BAD for bytes that are invalid in the column's character set. They need 2 bytes of output
per input byte for UTF-8 and hex, 3 for latin1, and 2 for the quotes; `put_undecodable` needs 2 more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import part
from loader.binlog.native.memory import load64, store64
from loader.binlog.values.digits import put_hex

QUOTE = np.uint8(34)
BACKSLASH = np.uint8(92)

_PLAIN = 0
_HIGH = 2


def _classes() -> NDArray[np.uint8]:
    """Return the class of each byte. 0: copied as it is; 2: above ASCII; else the second byte of its escape."""
    table = np.zeros(256, np.uint8)
    table[128:] = _HIGH
    table[34] = 34
    table[92] = 92
    table[10], table[13], table[0] = ord("n"), ord("r"), ord("0")
    return table


def _latin1() -> NDArray[np.uint8]:
    """Return the UTF-8 form of each latin1 byte, as rows of length and up to three bytes.

    The server's latin1 is cp1252, with the five undefined bytes as C1 control characters.
    """
    table = np.zeros((256, 4), np.uint8)
    for byte in range(256):
        try:
            text = bytes([byte]).decode("cp1252")
        except UnicodeDecodeError:
            text = chr(byte)
        raw = text.encode()
        table[byte, 0] = len(raw)
        table[byte, 1 : 1 + len(raw)] = list(raw)
    return table


_U0 = np.uint64(0)
_TOP = np.uint64(0x8080808080808080)
_PAST_CONTROLS = np.uint64(0x6060606060606060)  # sets the top bit of bytes from 32 on
_PAST_ZERO = np.uint64(0x7F7F7F7F7F7F7F7F)  # sets the top bit of bytes other than 0
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_CLASS = _classes()
_LATIN1 = _latin1()


@part
def sequence_length(buf: Bytes, pos: int, end: int) -> int:
    """Return the length of the UTF-8 sequence at a lead byte above ASCII; 0 if it is not well-formed (RFC 3629)."""
    lead = buf[pos]
    size = 2 if 0xC2 <= lead <= 0xDF else 3 if 0xE0 <= lead <= 0xEF else 4 if 0xF0 <= lead <= 0xF4 else 0
    if size == 0 or pos + size > end:
        return 0
    second = buf[pos + 1]
    lowest = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    highest = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if second < lowest or second > highest:
        return 0
    for i in range(pos + 2, pos + size):
        if buf[i] < 0x80 or buf[i] > 0xBF:
            return 0
    return size


@part
def put_escaped(out: Bytes, at: int, byte: np.uint8) -> int:
    """Write one ASCII byte inside quotes."""
    kind = _CLASS[byte]
    if kind == _PLAIN:
        out[at] = byte
        return at + 1
    out[at] = QUOTE if byte == QUOTE else BACKSLASH
    out[at + 1] = kind
    return at + 2


@part
def _is_plain(word: np.uint64) -> bool:
    """Return whether eight bytes are ASCII, no control characters, and neither quote nor backslash."""
    tests = (word + _PAST_CONTROLS) & ((word ^ _QUOTES) + _PAST_ZERO) & ((word ^ _BACKSLASHES) + _PAST_ZERO)
    return (word & _TOP) == _U0 and (tests & _TOP) == _TOP


@part
def put_utf8(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    """Write buf[pos:end] without quotes around it; return BAD if it is not UTF-8."""
    whole = end - pos >= 8
    while pos < end:
        if pos + 8 <= end:
            word = load64(buf, pos)
            if _is_plain(word):
                store64(out, at, word)
                at += 8
                pos += 8
                continue
        elif whole:
            # The last word overlaps bytes that are already written. They are plain: the same bytes are in the output.
            whole = False
            word = load64(buf, end - 8)
            if _is_plain(word):
                at += end - pos
                store64(out, at - 8, word)
                return at
        byte = buf[pos]
        kind = _CLASS[byte]
        if kind == _PLAIN:
            out[at] = byte
            at += 1
            pos += 1
        elif kind == _HIGH:
            size = sequence_length(buf, pos, end)
            if size == 0:
                return BAD
            for i in range(size):
                out[at + i] = buf[pos + i]
            at += size
            pos += size
        else:
            out[at] = QUOTE if byte == QUOTE else BACKSLASH
            out[at + 1] = kind
            at += 2
            pos += 1
    return at


@part
def put_text(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    """Write a quoted field of UTF-8 text."""
    out[at] = QUOTE
    at = put_utf8(out, at + 1, buf, pos, end)
    if at == BAD:
        return BAD
    out[at] = QUOTE
    return at + 1


@part
def put_latin1(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    """Write a quoted field of latin1 text."""
    out[at] = QUOTE
    at += 1
    for i in range(pos, end):
        byte = buf[i]
        if byte < 128:
            at = put_escaped(out, at, byte)
        else:
            size = np.int64(_LATIN1[byte, 0])
            for j in range(size):
                out[at + j] = _LATIN1[byte, 1 + j]
            at += size
    out[at] = QUOTE
    return at + 1


@part
def put_bytes(out: Bytes, at: int, buf: Bytes, pos: int, end: int, width: int) -> int:
    """Write a quoted field of hex digits, padded with zero bytes to `width` bytes (the log has no BINARY padding)."""
    out[at] = QUOTE
    at += 1
    for i in range(pos, end):
        at = put_hex(out, at, buf[i])
    for _ in range(width - (end - pos)):
        at = put_hex(out, at, np.uint8(0))
    out[at] = QUOTE
    return at + 1


@part
def put_undecodable(out: Bytes, at: int, buf: Bytes, pos: int, end: int) -> int:
    r"""Write a quoted field of invalid bytes: `\x` and hex. No text starts like this: its backslashes are doubled."""
    out[at] = QUOTE
    out[at + 1] = BACKSLASH
    out[at + 2] = np.uint8(120)
    at += 3
    for i in range(pos, end):
        at = put_hex(out, at, buf[i])
    out[at] = QUOTE
    return at + 1


@part
def looks_undecodable(out: Bytes, at: int, end: int) -> bool:
    r"""Return whether the field out[at:end] is a text such as `\x61a1`. Its backslash is doubled in the field."""
    first, last = at + 4, end - 1
    if last <= first or (last - first) % 2 or out[at + 1] != BACKSLASH or out[at + 3] != np.uint8(120):
        return False
    for i in range(first, last):
        if not (48 <= out[i] <= 57 or 97 <= out[i] <= 102):
            return False
    return True
