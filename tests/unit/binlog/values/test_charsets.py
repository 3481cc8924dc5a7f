"""Text in every character set. Python's codecs give the expected text where they agree with the servers."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.values.codepages import (
    SINGLE,
    WITH_PAIRS,
    codepage_of,
    decode_text,
    is_supported,
    page_name,
    sequences,
)
from loader.errors import DataError
from loader.model.charsets import AMBIGUOUS_CHARSETS
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import ASCII, BINARY, Field, Table, blob, char, geometry, integer, varchar, vector
from tests.unit.binlog.reading import staged
from tests.unit.binlog.values.test_floats import expected_float
from tests.unit.binlog.values.test_quoted_text import column, quoted

MANY = settings(max_examples=60, deadline=None)
COLLATIONS = {
    "armscii8": 32, "ascii": 11, "cp1250": 26, "cp1251": 51, "cp1256": 57, "cp1257": 59, "cp850": 4, "cp852": 40,
    "cp866": 36, "dec8": 3, "geostd8": 92, "greek": 25, "hebrew": 16, "hp8": 6, "keybcs2": 37, "koi8r": 7, "koi8u": 22,
    "latin2": 9, "latin5": 30, "latin7": 41, "macce": 38, "macroman": 39, "swe7": 10, "tis620": 18, "big5": 1,
    "cp932": 95, "eucjpms": 97, "euckr": 19, "gb18030": 248, "gb2312": 24, "gbk": 28, "sjis": 13, "ujis": 12,
}  # fmt: skip
SAME = {
    "ascii": "ascii", "latin2": "iso8859-2", "latin5": "iso8859-9", "latin7": "iso8859-13", "cp1250": "cp1250",
    "cp1251": "cp1251", "cp1257": "cp1257", "cp850": "cp850", "cp852": "cp852", "hp8": "hp-roman8", "koi8r": "koi8-r",
    "macce": "mac-latin2", "macroman": "mac-roman", "euckr": "cp949", "gb2312": "gb2312", "gbk": "gbk",
}  # fmt: skip
UCS2, UTF16, UTF16LE, UTF32 = 35, 54, 56, 60


def test_every_set_has_a_table_of_its_sequences() -> None:
    assert set(COLLATIONS) == {*SINGLE, *WITH_PAIRS}
    assert len(COLLATIONS) == 33
    assert all(len(codepage_of(name)) == len(sequences(name)) and is_supported(name) for name in COLLATIONS)
    assert is_supported("utf8mb4")
    assert not is_supported("collation 999")


@pytest.mark.parametrize("charset", SAME)
def test_sets_that_python_knows_as_the_servers_do(charset: str) -> None:
    for raw, code in zip(sequences(charset), codepage_of(charset).tolist(), strict=True):
        try:
            expected = raw.decode(SAME[charset])
        except UnicodeDecodeError:
            expected = ""
        assert (chr(code) if code or raw == b"\0" else "") == (expected if len(expected) == 1 else ""), raw


@pytest.mark.parametrize("charset", COLLATIONS)
def test_every_character_and_every_sequence_that_is_none(charset: str) -> None:
    known = codepage_of(charset) != 0
    known[0] = True
    raws = sequences(charset)
    texts = [chr(code) for code in codepage_of(charset).tolist()]
    good = [n for n in range(len(raws)) if known[n]]
    whole = [b"".join(raws[n] for n in good[at : at + 100]) for at in range(0, len(good), 100)]
    wanted = [quoted("".join(texts[n] for n in good[at : at + 100])) for at in range(0, len(good), 100)]
    assert column(varchar("v", 400, COLLATIONS[charset]), *whole) == wanted
    assert [decode_text(charset, raw) for raw in whole[:3]] == [
        "".join(texts[n] for n in good[at : at + 100]) for at in (0, 100, 200)
    ][: len(whole)]
    field = blob("t", 2, COLLATIONS[charset])
    # Of two bytes that are no pair, neither the pair nor the first alone may pass; the second may be a character.
    bad = [raw for n, raw in enumerate(raws) if not known[n] and (len(raw) == 1 or not known[raw[0]])]
    for raw in [*bad[:40], *bad[40 :: max(1, len(bad) // 40)]]:
        with pytest.raises(DataError, match=f"a value is not a text in {charset}") as caught:
            column(field, b"x" + raw)
        assert caught.value.where["column"] == "t"
        assert caught.value.where["position"]


@pytest.mark.parametrize("charset", WITH_PAIRS)
def test_a_text_that_ends_inside_a_character(charset: str) -> None:
    table = codepage_of(charset)
    for raw, code in zip(sequences(charset), table.tolist(), strict=True):
        if code and len(raw) > 1 and raw[-1] in {0xA1, 0xFE, 0x30}:
            with pytest.raises(DataError):
                column(varchar("v", 20, COLLATIONS[charset]), raw[:-1])
            return


@MANY
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.sampled_from(sorted(COLLATIONS)))
def test_kernel_and_labels_agree_on_any_bytes(values: list[bytes], charset: str) -> None:
    field = varchar("v", 400, COLLATIONS[charset])
    for value in values:
        try:
            expected = quoted(decode_text(charset, value))
        except UnicodeDecodeError:
            with pytest.raises(DataError):
                column(field, value)
        else:
            assert column(field, value) == [expected]


@MANY
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_in_the_sets_of_unicode(text: str) -> None:
    for collation, codec in ((UTF16, "utf-16-be"), (UTF16LE, "utf-16-le"), (UTF32, "utf-32-be"), (248, "gb18030")):
        if collation == 248 and ("\u1e3f" in text or "\ue7c7" in text):
            continue  # Python has these two of gb18030's the other way round
        assert column(blob("t", 3, collation), text.encode(codec), b"") == [quoted(text), '""']
    if text.isascii() or max(text) < "\uffff":
        assert column(varchar("v", 400, UCS2), text.encode("utf-16-be")) == [quoted(text)]


@pytest.mark.parametrize(
    ("collation", "raw"),
    [
        (UCS2, b"\0"), (UCS2, b"\xd8\0"), (UCS2, b"\xd8\x3d\xde\0"), (UCS2, b"\xdf\xff"), (UTF16, b"\0x\0"),
        (UTF16, b"\xd8\0"), (UTF16, b"\xd8\0\0x"), (UTF16, b"\xdc\0\0x"), (UTF16LE, b"\0\xd8"), (UTF16LE, b"\0\xd8x\0"),
        (UTF32, b"\0\0x"), (UTF32, b"\0\x11\0\0"), (UTF32, b"\0\0\xd8\0"), (UTF32, b"\xff\xff\xff\xff"),
        (ASCII, b"\x80"), (ASCII, "é".encode()), (16, b"\xa1"), (28, b"\x80"), (28, b"\xff\xff"), (28, b"\x81\x7f"),
        (12, b"\x8f"), (12, b"\x8f\xa2"), (12, b"\x8f\xa2\xff"), (12, b"\x8f\x20\xa1"), (248, b"\x81\x30\x81"),
        (248, b"\x81\x30\x81\x3a"), (248, b"\xe3\x32\x9a\x36"), (248, b"\xff\x30\x81\x30"), (248, b"\x84\x31\xa5\x30"),
        (248, b"\x81\x30\x80\x30"), (248, b"\x85\x30\x81\x30"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_text(collation: int, raw: bytes) -> None:
    for field in (char("c", 200, collation), varchar("c", 200, collation)):
        with pytest.raises(DataError, match="a value is not a") as caught:
            column(field, raw)
        assert caught.value.where["column"] == "c"


def test_several_sets_in_one_table() -> None:
    fields = (
        integer("id"), varchar("g", 40, 28), varchar("l", 40, 9), blob("j", 2, 13), char("k", 9, 7), varchar("u", 40, UTF16),
        varchar("m", 40),
    )  # fmt: skip
    texts = ("你\\", 'Łó"', "ｱ漢", "привет\n", "😀", "😀")
    codecs = ("gbk", "iso8859-2", "shift_jis", "koi8-r", "utf-16-be", "utf-8")
    log = LogBuilder().insert(Table("s", "t", fields), (1, *(t.encode(c) for t, c in zip(texts, codecs, strict=True))))
    (line,) = staged(bytes(log.data)).of("s.t")
    assert line[5:] == ["1", *texts]


def test_the_worst_growth_fits() -> None:
    fields = tuple(varchar(f"c{n}", 65535, 13) for n in range(4)) + tuple(vector(f"v{n}") for n in range(300))
    log = LogBuilder()
    rows = [(b"\xb1" * 60_000,) * 4 + ([],) * 300, (b'"' * 60_000,) * 4 + ([-1.1754944e-38] * 500,) * 300] * 3
    for number, row in enumerate(rows):
        log.insert(Table("s", "t", fields), row, number=number + 1)
    lines = staged(bytes(log.data)).of("s.t")
    assert [line[5] for line in lines] == ["ｱ" * 60_000, '"' * 60_000] * 3
    assert lines[1][9] == "[" + ",".join(["-1.1754944e-38"] * 500) + "]"


@MANY
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=50))
def test_a_vector_is_the_list_of_its_shortest_numbers(numbers: list[float]) -> None:
    wanted = '"[' + ",".join(expected_float(np.float32(one)) for one in numbers) + ']"'
    assert column(vector(), numbers) == [wanted]


@pytest.mark.parametrize("number", [-1.2345678e-15, -1.23456789e-14, -1.1754944e-38, -999999999999999.0])
def test_vectors_of_the_longest_numbers_fit_the_room_that_was_measured(number: float) -> None:
    log = LogBuilder().insert(Table("s", "t", (vector(),), key=()), [[number] * 2000])
    ((_, text),) = staged(bytes(log.data), room=64).text.items()  # the stager guards its block's end
    assert text.split(b",", 5)[5].count(b",") == 1999


@pytest.mark.parametrize(
    "raw", [b"\0", b"\0" * 5, struct.pack("<f", float("nan")), struct.pack("<2f", 1, float("-inf"))]
)
def test_a_vector_that_is_none(raw: bytes) -> None:
    with pytest.raises(DataError, match="a value is not a vector"):
        column(vector(), raw)


def test_a_geometry_is_the_hex_of_srid_and_wkb() -> None:
    raw = bytes.fromhex("e61000000101000000000000000000f03f0000000000000040")
    assert column(geometry(), raw, b"") == [f'"{raw.hex()}"', '""']


@pytest.mark.parametrize("mariadb", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_geometry_and_vector_count_as_their_servers_count_them(mariadb: bool, listed: bool) -> None:
    from loader.binlog.events.table_map import read_table_map

    fields: list[Field] = [varchar("a", 9, 28), geometry("g", BINARY if mariadb else None), varchar("b", 9, 9)]
    fields += [varchar("w", 9, BINARY) if mariadb else vector("w"), varchar("c", 9, 7), varchar("d", 9, 28)]
    table = Table("s", "t", tuple(fields))
    schema, _ = read_table_map(table.body(1, optional=table.optional(listed=listed))).schema(mariadb=mariadb)
    kind = "varbinary" if mariadb else "vector"
    assert [(column.type, column.charset) for column in schema.columns] == [
        ("varchar", "gbk"), ("geometry", ""), ("varchar", "latin2"), (kind, ""), ("varchar", "koi8r"), ("varchar", "gbk"),
    ]  # fmt: skip


@pytest.mark.parametrize("charset", [*SINGLE, *WITH_PAIRS])
def test_a_character_has_one_sequence_in_a_key(charset: str) -> None:
    every = codepage_of(charset).tolist()
    in_key = codepage_of(page_name(charset, in_key=True)).tolist()
    characters = [code for code in in_key if code]
    assert len(characters) == len(set(characters))
    assert set(characters) == {code for code in every if code}
    assert all(code in {0, other} for code, other in zip(in_key, every, strict=True))
    assert (in_key != every) == (charset in AMBIGUOUS_CHARSETS)
