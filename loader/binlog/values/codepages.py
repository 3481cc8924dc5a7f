"""The servers' character sets that are neither UTF-8 nor latin1, as tables of 16-bit characters.

`codepages.bin` holds them (see infra/charsets.py), 0 for what is no character. Per set: one entry per byte; for sets of
more than one byte, 128 rows of 256 for pairs from 0x80 on; then for ujis and eucjpms as many for three bytes after
0x8f, for gb18030 one per sequence of four bytes from 0x81308130 on, in their order, up to 16-bit characters' end.
"""

from __future__ import annotations

import zlib
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).with_name("codepages.bin")

SINGLE = (
    "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek",
    "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "swe7", "tis620",
)  # fmt: skip
"""Sets of one byte per character."""

WITH_PAIRS = ("big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis")
"""Sets of one or two bytes per character, and more in those below."""

SHIFTED = {"eucjpms", "ujis"}
FOUR = {"gb18030"}
UNICODE = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
"""Sets of two or four bytes per unit, with Python's names of them."""

PAIRS = 128 * 256
LISTED = 4 * 10 * 126 * 10  # of four bytes
_BEYOND = 0x90  # from this byte on, four bytes of gb18030 are characters above 16 bits, in Unicode's order
_HOLES = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # of cp1252, which the servers' latin1 keeps as they are


def is_supported(charset: str) -> bool:
    """Whether text of the character set is supported, here or as UTF-8 or latin1."""
    return charset in {"utf8mb4", "utf8mb3", "latin1", *UNICODE, *SINGLE, *WITH_PAIRS}


@cache
def codepage_of(charset: str) -> NDArray[np.uint16]:
    """The table of one of the sets of SINGLE and WITH_PAIRS."""
    return _tables()[charset]


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
    """The byte sequence of every entry of a table."""
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
    """The text of some bytes, for labels; the kernels decode rows.

    Raises:
        UnicodeDecodeError: they are no text of the character set.
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


def _character(charset: str, raw: bytes, at: int) -> tuple[int, str]:
    """Bytes of the character there, and the character."""
    known = _characters(charset)
    for size in range(1, 5):
        if raw[at : at + size] in known:
            return size, known[raw[at : at + size]]
    if charset in FOUR and raw[at] >= _BEYOND:
        return 4, raw[at : at + 4].decode("gb18030")
    raise UnicodeDecodeError(charset, raw, at, at + 1, "not a character")
