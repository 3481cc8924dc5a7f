"""Values between two values of a key column, to divide a range of keys.

The order of texts depends on the collation, which is unknown here. So a value can be outside the range on the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from string import digits, punctuation

from loader.model.table import Column
from loader.types.catalogue import type_of
from loader.types.column_type import Encoding

_CODECS = {"ascii": "latin-1", "latin1": "latin-1", "utf8mb3": "utf-8", "utf8mb4": "utf-8"}
"""Of the character sets that have all of ASCII. Latin-1 keeps every byte of the others."""
_BY_CODE = "".join(map(chr, range(ord(" "), ord("~") + 1)))
_BY_LETTER = " " + punctuation + digits + "abcdefghijklmnopqrstuvwxyz"  # as most collations order them
_CHARACTERS = 6  # after the common start that a text is divided by
_BYTES = 8


def is_divisible(column: Column) -> bool:
    """Return whether values between two values of a column can be computed."""
    encoding = type_of(column).encoding
    return encoding in {Encoding.INTEGER, Encoding.BYTES} or (encoding is Encoding.TEXT and column.charset in _CODECS)


def values_between(column: Column, first: str, last: str, parts: int) -> Iterator[list[str]]:
    """Yield lists of at most `parts - 1` values at equal distances between two values.

    A text column has two lists: one in the order of character codes, and one that ignores case. A column that is not
    divisible has no list.

    Args:
        column: of the key.
        first: the first value, as in a bound; see initial_load.keys.
        last: the last value. It is the smaller one if the index is descending.
        parts: the number of ranges to divide into.
    """
    if not is_divisible(column):
        return
    encoding = type_of(column).encoding
    if encoding is Encoding.INTEGER:
        yield _between(int(first), int(last), parts, str)
        return
    one, other = bytes.fromhex(first), bytes.fromhex(last)
    if encoding is Encoding.BYTES:
        yield _bytes_between(one, other, parts)
        return
    codec = _CODECS[column.charset]
    for alphabet in (_BY_CODE, _BY_LETTER):
        texts = _texts_between(one.decode(codec, "ignore"), other.decode(codec, "ignore"), parts, alphabet)
        yield [text.encode(codec).hex() for text in texts]


def _between(first: int, last: int, parts: int, value: Callable[[int], str]) -> list[str]:
    numbers = (first + (last - first) * part // parts for part in range(1, parts))
    return list(dict.fromkeys(map(value, numbers)))


def _common_size(first: Sequence[object], last: Sequence[object]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))


def _bytes_between(first: bytes, last: bytes, parts: int) -> list[str]:
    start = first[: _common_size(first, last)]
    one, other = (int.from_bytes(value[len(start) :][:_BYTES].ljust(_BYTES, b"\0")) for value in (first, last))
    return _between(one, other, parts, lambda number: (start + number.to_bytes(_BYTES)).hex())


def _texts_between(first: str, last: str, parts: int, alphabet: str) -> list[str]:
    start = first[: _common_size(first, last)]

    def number(text: str) -> int:
        found = 0
        for character in text[len(start) :][:_CHARACTERS].ljust(_CHARACTERS):
            found = found * len(alphabet) + _place(character, alphabet)
        return found

    def text(number: int) -> str:
        characters = []
        for _ in range(_CHARACTERS):
            number, place = divmod(number, len(alphabet))
            characters.append(alphabet[place])
        return (start + "".join(reversed(characters))).rstrip(" ")

    return _between(number(first), number(last), parts, text)


def _place(character: str, alphabet: str) -> int:
    """Return the place of a character in an alphabet; other characters are before or after all of it."""
    for known in (character, character.lower()):
        if known in alphabet:
            return alphabet.index(known)
    return 0 if character < " " else len(alphabet) - 1
