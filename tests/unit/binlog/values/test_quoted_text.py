"""Text and bytes as quoted fields: escapes, character sets, hex."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import DataError, UnsupportedError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import (
    ASCII,
    BINARY,
    LATIN1,
    UTF8MB3,
    UTF8MB4,
    Field,
    Table,
    blob,
    char,
    varchar,
)
from tests.unit.binlog.reading import records, staged

MANY = settings(deadline=None, max_examples=150)
ESCAPES = {'"': '""', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
NASTY = [*(chr(byte) for byte in range(32)), '"', "\\", ",", "\\N", "\\n", "\x7f", "\u2028", "\ufeff", "é", "漢", "😀"]


def quoted(text: str) -> str:
    """The plain rule of the dialect."""
    return '"' + "".join(ESCAPES.get(letter, letter) for letter in text) + '"'


def column(field: Field, *values: Any) -> list[str]:
    """The staged bytes of these values, unparsed."""
    table = Table("s", "t", (field,), key=())
    result = staged(bytes(LogBuilder().insert(table, *([value] for value in values)).data))
    return [line.split(",", 5)[5] for text in result.text.values() for line in records(text)]


@MANY
@given(st.lists(st.text() | st.lists(st.sampled_from(NASTY)).map("".join), min_size=1, max_size=30))
def test_text_is_quoted_and_escaped(values: list[str]) -> None:
    assert column(blob("t", 3, UTF8MB4), *values) == [quoted(value) for value in values]


@pytest.mark.parametrize("letter", NASTY)
def test_each_nasty_character_alone_and_among_others(letter: str) -> None:
    values = [letter, letter * 3, f"a{letter}b", f'"{letter}\\']
    assert column(varchar(), *values) == [quoted(value) for value in values]


@pytest.mark.parametrize(
    "collation", [UTF8MB4, UTF8MB3, ASCII, 45, 46, 224, 247, 256, 308, 323, 76, 192, 215, 65, 2304, 1270]
)
def test_collations_of_utf8_and_ascii_are_text(collation: int) -> None:
    assert column(varchar("v", 40, collation), 'a"b') == ['"a""b"']


def well_formed(raw: bytes) -> bool:
    """Python's decoder follows RFC 3629: no surrogates, overlongs or values above U+10FFFF."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


FRAGMENTS = st.sampled_from(
    [
        *(b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"),  # longer than they must be
        *(b"\xed\xa0\x80", b"\xed\xbf\xbf"),  # surrogates
        *(b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff"),  # above U+10FFFF
        *(b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"),  # cut
        *("é€😀\ud7ff\ue000\U0010ffff".encode(), b"a"),
    ]
)


@MANY
@given(st.lists(FRAGMENTS | st.binary(max_size=4), max_size=6).map(b"".join))
def test_bytes_are_text_exactly_when_they_are_well_formed_utf8(raw: bytes) -> None:
    if well_formed(raw):
        assert column(varchar(), raw) == [quoted(raw.decode())]
    else:
        with pytest.raises(DataError, match="a value is not a varchar in utf8mb4"):
            column(varchar(), raw)


def test_every_two_byte_combination_is_judged_as_python_does() -> None:
    for lead in range(256):
        good = [bytes([lead, next_]) for next_ in range(256) if well_formed(bytes([lead, next_]))]
        if good:
            assert column(varchar(), *good) == [quoted(raw.decode()) for raw in good]
        for bad in (raw for next_ in (0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF) if (raw := bytes([lead, next_])) not in good):
            with pytest.raises(DataError):
                column(varchar(), bad)


@pytest.mark.parametrize("lead", [0xE0, 0xED, 0xEF, 0xF0, 0xF1, 0xF4])
def test_edges_of_three_and_four_bytes(lead: int) -> None:
    for second in range(0x7E, 0xC2):
        raw = bytes([lead, second, 0x80] + [0xBF] * (lead >= 0xF0))
        if well_formed(raw):
            assert column(varchar(), raw) == [quoted(raw.decode())]
        else:
            with pytest.raises(DataError):
                column(varchar(), raw)


def test_an_error_of_a_text_names_table_column_and_event() -> None:
    table = Table("s", "t", (varchar("first"), varchar("second")), key=())
    log = LogBuilder().begin()
    log.table_map(table)
    at = log.write(table, ("fine", b"caf\xe9"))
    log.xid()
    with pytest.raises(DataError) as caught:
        staged(bytes(log.data))
    assert caught.value.where == {"file": "binlog.000001", "position": str(at), "table": "s.t", "column": "second"}
    assert caught.value.exit_code == 4


HOLES = [0x81, 0x8D, 0x8F, 0x90, 0x9D]


def latin1(byte: int) -> str:
    """The server's latin1: cp1252, and its five holes as they are."""
    return chr(byte) if byte in HOLES else bytes([byte]).decode("cp1252")


def test_latin1_is_cp1252_with_five_holes() -> None:
    raw = bytes(range(256))
    text = "".join(latin1(byte) for byte in raw)
    assert column(varchar("v", 400, LATIN1), raw) == [quoted(text)]
    assert text[0x80] == "€"
    assert text[0x81] == "\x81"


@pytest.mark.parametrize("collation", [5, 8, 15, 31, 47, 48, 49, 94, 8 + 1024])
def test_every_latin1_collation(collation: int) -> None:
    assert column(char("c", 4, collation), b"\xe9\x80") == ['"é€"']


@MANY
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=10))
def test_latin1_of_any_bytes(values: list[bytes]) -> None:
    expected = [quoted("".join(latin1(byte) for byte in value)) for value in values]
    assert column(varchar("v", 400, LATIN1), *values) == expected


@MANY
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=10))
def test_binary_is_lower_case_hex(values: list[bytes]) -> None:
    expected = [f'"{value.hex()}"' for value in values]
    assert column(varchar("v", 400, BINARY), *values) == expected
    assert column(blob("b", 2), *values) == expected


@pytest.mark.parametrize("width", [1, 6, 16, 255])
def test_fixed_binary_is_padded_with_zero_bytes(width: int) -> None:
    values = [b"", b"\x01", bytes(range(width))[:width]]
    assert column(char("c", width, BINARY), *values) == [f'"{value.ljust(width, bytes(1)).hex()}"' for value in values]


@pytest.mark.parametrize("prefix", [1, 2, 3, 4])
def test_each_size_of_blob_and_text(prefix: int) -> None:
    value = "x" * (200 if prefix == 1 else 60_000)
    assert column(blob("t", prefix, UTF8MB4), value, "") == [quoted(value), '""']
    assert column(blob("b", prefix), value, "") == [f'"{value.encode().hex()}"', '""']


@pytest.mark.parametrize("length", [1, 255, 256, 300, 1020])
def test_char_of_more_than_255_bytes_hides_its_length_in_the_type(length: int) -> None:
    assert column(char("c", length), "é" * (length // 2), "") == [quoted("é" * (length // 2)), '""']


@pytest.mark.parametrize(("length", "prefix"), [(255, 1), (256, 2), (65535, 2)])
def test_varchar_prefix_is_chosen_by_the_longest_value(length: int, prefix: int) -> None:
    field = varchar("v", length)
    assert field.encode("")[:2] == bytes(prefix)
    assert column(field, "a" * 255) == [quoted("a" * 255)]


@pytest.mark.parametrize("collation", [0, 400, 3328])
def test_a_character_set_that_is_not_covered_is_refused_by_column(collation: int) -> None:
    with pytest.raises(UnsupportedError, match=f"collation {collation}") as caught:
        column(varchar("v", 40, collation), "a")
    assert caught.value.where["column"] == "v"
    assert caught.value.where["table"] == "s.t"
