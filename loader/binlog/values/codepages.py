"""Code pages: the servers' character sets other than UTF-8 and latin1, as tables of 16-bit characters.

`codepages.bin` holds the tables (see infra/charsets.py); an entry 0 means that there is no character. A table has one
entry per byte. A multi-byte character set then has 128 rows of 256 entries for pairs of bytes from 0x80 on. ujis and
eucjpms have as many again, for three bytes that start with 0x8f. gb18030 has one entry per sequence of four bytes, in
order from 0x81308130 on, as far as the characters have 16 bits.
"""

from __future__ import annotations

import zlib
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loader.model.charsets import AMBIGUOUS_CHARSETS

DATA = Path(__file__).with_name("codepages.bin")

SINGLE = (
    "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek",
    "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "swe7", "tis620",
)  # fmt: skip
"""Character sets with one byte per character."""

WITH_PAIRS = ("big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis")
"""Character sets with one or two bytes per character; those in SHIFTED and FOUR have more."""

SHIFTED = {"eucjpms", "ujis"}
FOUR = {"gb18030"}
UNICODE = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
"""Character sets with two or four bytes per unit, and Python's names of their encodings."""

_IN_KEYS = " in keys"
PAIRS = 128 * 256
LISTED = 4 * 10 * 126 * 10  # sequences of four bytes in the table of gb18030
_BEYOND = 0x90  # gb18030: sequences from this first byte on are the characters above 16 bits, in Unicode order
_NEC_SELECTED = slice(256 + (0xED - 0x80) * 256, 256 + (0xEF - 0x80) * 256)
"""The entries of cp932 for the pairs from 0xed and 0xee on. Their characters also have other pairs."""
_HOLES = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # undefined in cp1252; the servers' latin1 keeps these bytes as they are


def is_supported(charset: str) -> bool:
    """Return whether text in this character set is supported."""
    return charset in {"utf8mb4", "utf8mb3", "latin1", *UNICODE, *SINGLE, *WITH_PAIRS}


def page_name(charset: str, *, in_key: bool) -> str:
    """Return the name of the table that decodes the values of a column, inside or outside a key."""
    return charset + _IN_KEYS if in_key and charset in AMBIGUOUS_CHARSETS else charset


@cache
def codepage_of(page: str) -> NDArray[np.uint16]:
    """Return a table by its name: see `page_name`. The name of a character set is that of its table outside keys."""
    charset = page.removesuffix(_IN_KEYS)
    return _tables()[charset] if page == charset else _unambiguous(charset)


def _unambiguous(charset: str) -> NDArray[np.uint16]:
    """Return a table in which each character has one byte sequence. The other sequences are no characters.

    The server has two rows if their keys are two sequences of one character. Both rows would have the same key in the
    warehouse. The sequence that stays is the first one, and in cp932 the one to which the servers convert (tests/
    integration/types). In sjis they convert a backslash to 0x815f, but 0x5c stays.
    """
    codes = _tables()[charset]
    is_late = np.zeros(len(codes), np.bool_)
    if charset == "cp932":
        is_late[_NEC_SELECTED] = True
    order = np.argsort(is_late, kind="stable")
    _, first = np.unique(codes[order], return_index=True)
    kept = np.zeros(len(codes), np.bool_)
    kept[order[first]] = True
    return np.where(kept, codes, 0).astype(np.uint16)


@cache
def _tables() -> dict[str, NDArray[np.uint16]]:
    steps = np.frombuffer(zlib.decompress(DATA.read_bytes()), "<u2")
    codes = np.cumsum(steps, dtype=np.uint16)
    names = (*SINGLE, *WITH_PAIRS)
    ends = np.cumsum([_entries(name) for name in names])
    return dict(zip(names, np.split(codes, ends[:-1]), strict=True))


def _entries(charset: str) -> int:
    if charset in SINGLE:
        return 256
    return 256 + PAIRS + (PAIRS if charset in SHIFTED else LISTED if charset in FOUR else 0)


def sequences(charset: str) -> list[bytes]:
    """Return the byte sequence of every entry of a table, in order."""
    found = [bytes([byte]) for byte in range(256)]
    if charset in SINGLE:
        return found
    pairs = list(product(range(0x80, 0x100), range(0x100)))
    found += [bytes(pair) for pair in pairs]
    if charset in SHIFTED:
        found += [bytes([0x8F, *pair]) for pair in pairs]
    if charset in FOUR:
        digits, letters = range(0x30, 0x3A), range(0x81, 0xFF)
        found += [bytes(four) for four in product(range(0x81, 0x85), digits, letters, digits)]
    return found


@cache
def _characters(charset: str) -> dict[bytes, str]:
    codes = codepage_of(charset).tolist()
    return {raw: chr(code) for raw, code in zip(sequences(charset), codes, strict=True) if code or raw == b"\0"}


def decode_text(charset: str, raw: bytes) -> str:
    """Decode bytes to text in Python, for labels and statements. Kernels decode row values.

    Raises:
        UnicodeDecodeError: the bytes are invalid in the character set.
    """
    if charset in UNICODE:
        return raw.decode(UNICODE[charset])
    if charset == "latin1":
        return "".join(chr(byte) if byte in _HOLES else bytes([byte]).decode("cp1252") for byte in raw)
    if charset in {"binary", "utf8mb3", "utf8mb4"}:
        return raw.decode("latin-1" if charset == "binary" else "utf-8")
    text, at = "", 0
    while at < len(raw):
        size, character = _character(charset, raw, at)
        text += character
        at += size
    return text


def is_encodable(charset: str, character: str) -> bool:
    """Return whether a character set has a character. An unknown character set counts as ASCII."""
    if character.isascii() or charset in {"utf8mb4", "utf16", "utf16le", "utf32"}:
        return True
    if charset in {"utf8mb3", "ucs2"}:
        return character <= "\uffff"
    return character in _repertoire(charset) or (charset in FOUR and character > "\uffff")


@cache
def _repertoire(charset: str) -> frozenset[str]:
    if charset == "latin1":
        return frozenset(decode_text("latin1", bytes(range(256))))
    return frozenset(_characters(charset).values()) if charset in {*SINGLE, *WITH_PAIRS} else frozenset()


def _character(charset: str, raw: bytes, at: int) -> tuple[int, str]:
    """Return the number of bytes of the character at `at`, and the character."""
    known = _characters(charset)
    for size in range(1, 5):
        if raw[at : at + size] in known:
            return size, known[raw[at : at + size]]
    if charset in FOUR and raw[at] >= _BEYOND:
        return 4, raw[at : at + 4].decode("gb18030")
    raise UnicodeDecodeError(charset, raw, at, at + 1, "not a character")
