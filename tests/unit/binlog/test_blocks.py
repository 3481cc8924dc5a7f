"""The boundaries of log blocks and output blocks change nothing, and nothing is written outside of the output."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog import stager
from loader.errors import DataError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import LATIN1, Field, Table, blob, date, datetime, decimal, enum, integer, json, varchar
from tests.unit.binlog.jsonb import document
from tests.unit.binlog.reading import staged, walked

ORDERS = Table("shop", "orders", (integer("id"), varchar("name")))
ITEMS = Table("shop", "items", (integer("id"), integer("line"), json()), key=(0, 1))


def mixed(checksum: bool = True) -> bytes:
    """Transactions over two tables with every kind of row event."""
    log = LogBuilder(checksum=checksum)
    for number in range(1, 4):
        log.begin(number)
        log.table_map(ORDERS, 100)
        log.table_map(ITEMS, 101)
        log.write(ORDERS, (number, "a" * number), (number + 10, "b"), table_id=100, last=False)
        log.write(ITEMS, (number, 1, document([number, "x"])), table_id=101)
        log.table_map(ORDERS, 100)
        log.update(ORDERS, ((number, "a"), (number, "c")), ((number + 10, "b"), (number + 20, "b")))
        log.xid()
        log.gtid(number + 10)
        log.query(f"CREATE TABLE t{number} (id INT)", "shop")
    log.rotate()
    return bytes(log.data)


@pytest.mark.parametrize("checksum", [True, False])
def test_blocks_cut_at_every_byte_give_the_same_index(checksum: bool) -> None:
    log = mixed(checksum)
    whole = walked(log)
    for cut in range(5, len(log)):
        pieces = walked(log, [cut])
        for name in ("rows", "transactions", "statements", "counts"):
            assert np.array_equal(getattr(pieces, name), getattr(whole, name)), f"{name} when cut at {cut}"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(5, len(mixed())), max_size=40).map(sorted))
def test_any_cuts_give_the_same_lines(cuts: list[int]) -> None:
    assert staged(mixed(), blocks=cuts).text == staged(mixed()).text


ALPHABET = st.text('ab"\\\n\0é', max_size=60)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(ALPHABET, ALPHABET), min_size=1, max_size=12), st.integers(1200, 3000), st.booleans())
def test_a_small_output_block_is_resumed_without_loss_or_repeat(
    pairs: list[tuple[str, str]], room: int, both: bool
) -> None:
    log = LogBuilder().begin()
    for number, (before, after) in enumerate(pairs):
        log.table_map(ORDERS)
        log.write(ORDERS, (number, before), (-number, after), last=False)
        log.update(ORDERS, ((number, before), (number, after)), ((number, after), (number + 1, before)), last=False)
        log.delete(ORDERS, (number, after))
    log.xid()
    small, large = (staged(bytes(log.data), every_update=both, room=size) for size in (room, 1 << 20))
    assert small.text == large.text
    assert small.counts == large.counts


@pytest.mark.parametrize("size", [1, 5_000, 70_000, 700_000])
def test_rows_larger_than_the_output_block_enlarge_it(size: int) -> None:
    table = Table("s", "t", (integer("id"), blob("b", 4), blob("l", 3, LATIN1)))
    log = LogBuilder().insert(table, (1, b"\xff" * size, b"\xe9" * size), (2, b"", b""))
    result = staged(bytes(log.data), room=2048)
    (text,) = result.text.values()
    fields = [line.split(b",", 5)[5] for line in text.splitlines()]
    assert fields == [b'1,"' + b"ff" * size + b'","' + "é".encode() * size + b'"', b'2,"",""']


@pytest.mark.parametrize("tail", [0, 100, 1000, 2000, 4000, 6000])
@pytest.mark.parametrize("both", [False, True])
def test_json_that_grows_leaves_room_for_the_columns_behind_it(tail: int, both: bool) -> None:
    """Control characters become seven bytes each, far more than the room that is asked for in advance."""
    table = Table("s", "t", (integer("id"), json(), varchar("v", 8000)))
    raw = document("\x01" * 700)
    log = LogBuilder().begin()
    log.table_map(table)
    log.update(table, ((1, raw, "x" * tail), (1, raw, "y" * tail)))
    log.xid()
    expected = staged(bytes(log.data), every_update=both).text
    for room in range(2 * tail + 2000, 4 * tail + 16_000, 97):
        assert staged(bytes(log.data), every_update=both, room=room).text == expected


WIDE: dict[str, tuple[Field, object]] = {
    "decimals": (decimal("d", 65, 30), Decimal("9" * 34 + "." + "1" * 30)),
    "datetimes": (datetime("d", 6), (9999, 12, 31, 23, 59, 59, 999_999)),
    "dates": (date("d"), (2024, 1, 1)),
    "labels": (enum("d", ["l" * 250]), 1),
    "texts": (varchar("d", 200), '"' * 90),
    "integers": (integer("d", 8), -(2**63)),
}


@pytest.mark.parametrize("kind", list(WIDE))
@pytest.mark.parametrize("first", [None, "\x01" * 300])
def test_many_columns_stay_inside_the_output_block(kind: str, first: str | None) -> None:
    field, value = WIDE[kind]
    fields = tuple(Field(f"c{i}", *list(vars(field).values())[1:]) for i in range(60))
    table = Table("s", "t", (json(), *fields), key=())
    log = LogBuilder().insert(table, *[[None if first is None else document(first), *[value] * 60]] * 3)
    expected = staged(bytes(log.data)).text
    for room in range(2000, 24_000, 313):
        assert staged(bytes(log.data), room=room).text == expected


def test_two_rows_of_one_event_are_written_apart_when_they_must() -> None:
    log = LogBuilder().insert(ORDERS, *[(n, "x" * 300) for n in range(20)])
    result = staged(bytes(log.data), room=3000)
    assert len(result.writes) > 3
    assert [line[5] for line in result.of("shop.orders")] == [str(n) for n in range(20)]


def test_a_row_that_would_need_more_than_the_largest_block_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stager, "_OUT_MOST", 1 << 16)
    table = Table("s", "t", (integer("id"), blob("b", 4)))
    log = LogBuilder().insert(table, (1, bytes(100_000)))
    with pytest.raises(DataError, match="a row is larger than 4 GiB"):
        staged(bytes(log.data), room=2048)
