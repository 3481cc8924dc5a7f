"""Row images without some columns (binlog_row_image MINIMAL and NOBLOB): absent is neither NULL nor empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import BinlogFormatError, LoaderError, UnsupportedError
from tests.unit.binlog.builder import DELETE, UPDATE, WRITE, LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.reading import outcome, staged

WIDE = Table("shop", "wide", (*(integer(f"c{n}") for n in range(8)), varchar("v"), varchar("w")), key=(1,))
COUNT = len(WIDE.fields)


def bitmap(columns: Sequence[int]) -> bytes:
    return sum(1 << index for index in columns).to_bytes((COUNT + 7) // 8, "little")


def record(kind: int, *images: dict[int, Any], every_update: bool = False) -> list[list[str | None]]:
    """What a row event of images (columns and their values) is staged as, without meta but op and absent columns."""
    log = LogBuilder().begin()
    log.table_map(WIDE)
    present = b"".join(bitmap(sorted(image)) for image in images)
    data = [WIDE.image([image[index] for index in sorted(image)], sorted(image)) for image in images]
    log.rows(kind, WIDE, data, present=present)
    log.xid()
    found = staged(bytes(log.data), every_update=every_update).of("shop.wide")
    return [[line[0], line[4], *line[5:]] for line in found]


def shown(op: str, image: dict[int, Any], *, follows: bool = False) -> list[str | None]:
    """A record; one that `follows` has the row of the record before it, which the bit after the last column's says."""
    left_out = [index for index in range(COUNT) if index not in image]
    absent = bitmap([*left_out, COUNT] if follows else left_out).hex() if left_out else ""
    values = [None if image.get(index) is None else str(image[index]) for index in range(COUNT)]
    return [op, absent, *values]


def test_an_insert_of_some_columns() -> None:
    assert record(WRITE, {1: 7, 8: "", 9: None}) == [
        ["I", "fd00", None, "7", None, None, None, None, None, None, "", None]
    ]


def test_an_update_takes_from_the_image_before_what_the_one_after_leaves_out() -> None:
    assert record(UPDATE, {1: 7}, {8: "new", 2: None}) == [shown("U", {1: 7, 8: "new", 2: None})]


def test_a_changed_key_is_two_records() -> None:
    assert record(UPDATE, {1: 7}, {1: 8}) == [shown("D", {1: 7}), shown("I", {1: 8}, follows=True)]
    both = [shown("D", {1: 7}), shown("I", {1: 7, 3: 8}, follows=True)]
    assert record(UPDATE, {1: 7}, {3: 8}, every_update=True) == both


def test_the_bit_of_a_row_that_follows_takes_another_byte_behind_eight_columns() -> None:
    table = Table("shop", "eight", tuple(integer(f"c{n}") for n in range(8)), key=(0,))
    log = LogBuilder().begin()
    log.table_map(table)
    log.rows(UPDATE, table, [table.image([1], [0]), table.image([2, 5], [0, 1])], present=b"\x01\x03")
    log.xid()
    found = staged(bytes(log.data)).of("shop.eight")
    assert [[line[0], *line[4:8]] for line in found] == [["D", "fe", "1", None, None], ["I", "fc01", "2", "5", None]]


VALUES = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))
TEXTS = st.one_of(st.none(), st.text('ab,\\"\n', max_size=40))
IMAGE = st.fixed_dictionaries(
    {1: st.integers(0, 3)},
    optional={**{n: VALUES for n in range(8) if n != 1}, 8: TEXTS, 9: TEXTS},
)


@settings(deadline=None, max_examples=150)
@given(IMAGE, IMAGE, st.booleans())
def test_any_images(before: dict[int, Any], after: dict[int, Any], with_key: bool) -> None:
    if not with_key:
        after = {index: value for index, value in after.items() if index != 1}
    after = after or {8: "x"}
    whole = before | after
    expected = [shown("U", whole)] if whole[1] == before[1] else [
        shown("D", before), shown("I", whole, follows=True)
    ]  # fmt: skip
    assert record(UPDATE, before, after) == expected
    assert record(DELETE, before) == [shown("D", before)]
    assert record(WRITE, whole) == [shown("I", whole)]


def refused(table: Table, kind: int, present: bytes, image: bytes) -> LoaderError:
    log = LogBuilder().begin()
    log.table_map(table)
    at = log.rows(kind, table, [image], present=present)
    log.xid()
    found = outcome(bytes(log.data))
    assert isinstance(found, LoaderError), found
    assert found.where["position"] == str(at)
    return found


@pytest.mark.parametrize("kind", [WRITE, DELETE])
def test_an_image_without_its_key_is_refused(kind: int) -> None:
    found = refused(WIDE, kind, bitmap([0, 2]), WIDE.image([1, 2], [0, 2]))
    assert isinstance(found, UnsupportedError)
    assert "leaves out columns that identify its row" in found.what
    keyless = Table("shop", "keyless", WIDE.fields, key=())
    assert isinstance(refused(keyless, kind, bitmap(range(1, COUNT)), keyless.image([None] * 9, range(1, 10))),
                      UnsupportedError)  # fmt: skip


def test_rows_that_take_no_bytes_are_not_passed_over() -> None:
    # INSERT INTO t () VALUES () of a key with a default is logged so.
    for table in (WIDE, Table("shop", "keyless", WIDE.fields, key=())):
        found = refused(table, WRITE, bitmap([]), b"")
        assert isinstance(found, UnsupportedError)
        assert "leaves out columns that identify its row" in found.what


def test_an_update_to_nothing_is_damage() -> None:
    assert isinstance(refused(WIDE, UPDATE, bitmap([1]) + bitmap([]), WIDE.image([1], [1])), BinlogFormatError)


def test_an_image_shorter_than_its_columns_is_damage() -> None:
    assert isinstance(refused(WIDE, WRITE, bitmap([1, 2]), WIDE.image([1], [1])), BinlogFormatError)
