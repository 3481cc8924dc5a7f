"""Values between two values of a key column."""

from __future__ import annotations

import pytest

from loader.initial_load.bounds.key_values import is_divisible, values_between
from loader.model.table import Column

UTF8 = Column("c", "varchar", charset="utf8mb4")


def texts(first: str, last: str, parts: int, column: Column = UTF8) -> list[list[str]]:
    """The values as texts."""
    codec = "latin-1" if column.charset == "latin1" else "utf-8"
    found = values_between(column, first.encode(codec).hex(), last.encode(codec).hex(), parts)
    return [[bytes.fromhex(value).decode(codec) for value in values] for values in found]


def test_numbers() -> None:
    column = Column("c", "bigint", unsigned=True)
    assert list(values_between(column, "0", "18446744073709551615", 2)) == [["9223372036854775807"]]
    assert list(values_between(column, "9", "1", 4)) == [["7", "5", "3"]]
    assert list(values_between(column, "1", "3", 9)) == [["1", "2"]]


def test_bytes() -> None:
    column = Column("c", "binary", size=16)
    assert list(values_between(column, "ab" + "00" * 15, "ab" + "80" + "00" * 14, 2)) == [["ab" + "40" + "00" * 7]]
    assert list(values_between(column, "", "ff", 2)) == [["7f80000000000000"]]


def test_texts_with_a_common_start() -> None:
    (by_code, by_letter) = texts("code-0", "code-8", 2)
    assert by_code == by_letter == ["code-4"]


@pytest.mark.parametrize(
    ("first", "last", "alphabet", "middle"),
    [
        ("A", "C", 0, "B"),
        ("a", "c", 0, "b"),
        ("a", "C", 1, "b"),
        ("A", "c", 1, "b"),
        ("x", "я", 0, "{"),
        ("\t", "@", 0, "0"),
    ],
)
def test_letters(first: str, last: str, alphabet: int, middle: str) -> None:
    assert texts(first, last, 2)[alphabet] == [middle]


def test_values_are_valid_in_the_character_set_of_their_column() -> None:
    assert texts("é0", "é8", 2)[0] == ["é4"]
    assert texts("é0", "é8", 2, Column("c", "char", charset="latin1"))[0] == ["é4"]
    assert next(values_between(UTF8, "ff30", "ff38", 2)) == ["34"]


@pytest.mark.parametrize(
    "column",
    [
        Column("c", "decimal", size=9),
        Column("c", "datetime"),
        Column("c", "varchar", charset="utf16"),
        Column("c", "year"),
    ],
    ids=str,
)
def test_other_columns_are_not_divided(column: Column) -> None:
    assert not is_divisible(column)
    assert list(values_between(column, "00", "01", 2)) == []
