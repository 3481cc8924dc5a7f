"""Bytes that are invalid in their column's character set are staged as hex if `undecodable = "hex"`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.program import codepage_array, codepage_offsets, text_operation
from loader.binlog.values import codepages
from loader.binlog.values.codepages import decode_text
from loader.errors import DataError
from loader.initial_load.result_set import kernel as k
from loader.initial_load.result_set import program as p
from loader.model.table import Column
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Field, Table, blob, char, compressed_blob, integer, varchar
from tests.unit.binlog.reading import records, staged
from tests.unit.binlog.values.test_charsets import COLLATIONS, UCS2, UTF16, UTF16LE, UTF32
from tests.unit.binlog.values.test_compressed_columns import stored
from tests.unit.binlog.values.test_quoted_text import quoted
from tests.unit.initial_load.packets import packed, packet, row, stage

ALL = COLLATIONS | {"utf8mb4": 255, "utf8mb3": 33, "ucs2": UCS2, "utf16": UTF16, "utf16le": UTF16LE, "utf32": UTF32}
BAD = {
    "utf8mb4": b"a\xff",
    "gbk": b"\xfe\xfe",
    "ucs2": b"\xd8\x00",
    "ascii": b"\x80",
    "utf32": b"\x00\x11\x00\x00",
    "sjis": b"\\\x81",
}


def lines(field: Field, *values: bytes, room: int = 1 << 16) -> list[str]:
    """The field of each value as it is staged."""
    table = Table("s", "t", (integer("id"), field))
    log = LogBuilder().insert(table, *((n, value) for n, value in enumerate(values)))
    ((_, text),) = staged(bytes(log.data), hex_fallback=True, room=room).text.items()
    return [line.split(",", 6)[6] for line in records(text)]


@pytest.mark.parametrize("charset", BAD)
@pytest.mark.parametrize("make", [blob, varchar, char, compressed_blob])
def test_they_are_hex_after_a_mark_that_no_text_has(charset: str, make: type[Field]) -> None:
    field = make("v", 2 if make is blob else 4 if make is compressed_blob else 90, ALL[charset])  # type: ignore[call-arg]
    raw, text = BAD[charset], decode_text(charset, "\\x61".encode(codepages.UNICODE.get(charset, "ascii")))
    good = "\\x61".encode(codepages.UNICODE.get(charset, "ascii"))
    values = [stored(raw * 40), b"\0" + raw, stored(good)] if make is compressed_blob else [raw * 20, raw, good]
    times = 40 if make is compressed_blob else 20
    assert lines(field, *values) == [f'"\\x{(raw * times).hex()}"', f'"\\x{raw.hex()}"', quoted(text)]
    assert quoted(text).startswith('"\\\\x')


@pytest.mark.parametrize("charset", BAD)
def test_a_key_must_not_look_like_them(charset: str) -> None:
    table = Table("s", "t", (varchar("v", 90, ALL[charset]),), key=(0,))
    wide = codepages.UNICODE.get(charset, "ascii")
    for text in ("\\x61", "\\x" + "0af9" * 9):
        log = LogBuilder().insert(table, [text.encode(wide)])
        with pytest.raises(DataError, match="a value is not a varchar") as caught:
            staged(bytes(log.data), hex_fallback=True)
        assert "a key must not have a text such as" in caught.value.why
        assert "undecodable" not in caught.value.hint
    others = ["\\x", "\\x6", "\\x6A", "\\y61", "x61", "\\x61 ", "\\\\x61", "\\xg1"]
    log = LogBuilder().insert(table, *([text.encode(wide)] for text in others))
    ((_, text),) = staged(bytes(log.data), hex_fallback=True).text.items()
    assert len(records(text)) == len(others)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.sampled_from(sorted(ALL)))
def test_any_bytes_of_any_set_are_their_text_or_their_hex(values: list[bytes], charset: str) -> None:
    expected = []
    for value in values:
        try:
            expected.append(quoted(decode_text(charset, value)))
        except UnicodeDecodeError:
            expected.append(f'"\\x{value.hex()}"')
    assert lines(varchar("v", 400, ALL[charset]), *values) == expected


@pytest.mark.parametrize("size", range(1, 60))
def test_they_fit_the_room_that_was_measured(size: int) -> None:
    for field in (blob("v", 2, ALL["utf8mb4"]), compressed_blob("v", 4, ALL["utf8mb4"])):
        raw = b"a" * (size - 1) + b"\xff"
        value = raw if field.wire == 252 else stored(raw)
        assert lines(field, *[value] * 9, room=64) == [f'"\\x{raw.hex()}"'] * 9  # the stager guards its block's end


@pytest.mark.parametrize("charset", BAD)
def test_a_load_writes_the_same(charset: str) -> None:
    column = Column("v", "varchar", charset=charset)
    first = codepage_offsets((column,))
    operation, x, y, most = text_operation(charset, first) or (0, 0, 0, 0)
    program = np.array([(p._TEXTS[operation] + p.log.HEXED, 0, x, y, most)], np.int64)
    data = b"".join(packet(row(packed(value))) for value in (BAD[charset], BAD[charset] * 900))
    status, text, _ = stage(data, program, tables=codepage_array(tuple(first)))
    assert status == k.MORE
    assert text.decode().splitlines() == [f'"\\x{(BAD[charset] * times).hex()}"' for times in (1, 900)]


def test_they_are_an_error_unless_it_is_asked_for() -> None:
    log = LogBuilder().insert(Table("s", "t", (varchar("v", 9, ALL["gbk"]),)), [b"\xfe\xfe"])
    with pytest.raises(DataError, match="a value is not a varchar in gbk") as caught:
        staged(bytes(log.data))
    assert caught.value.where["column"] == "v"
    assert int(caught.value.where["position"]) > 4
    assert 'undecodable = "hex"' in caught.value.hint
