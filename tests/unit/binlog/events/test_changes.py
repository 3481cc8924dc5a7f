"""Rows become staged records with the right operation, seqno, row offset and commit time."""

from __future__ import annotations

import pytest

from tests.unit.binlog.builder import DELETE_V1, MICROS, SECONDS, UPDATE_V1, WRITE_V1, LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.reading import UNIT, staged

KEYED = Table("shop", "orders", (integer("id"), varchar("name")))
KEYLESS = Table("shop", "log", (integer("id"), varchar("name")), key=())
COMMITTED = "2023-11-14 22:13:20.123456"
# Bytes from the start of a row event to its first image: header, post-header 8, extra length 2, column count, bitmap.
V1_HEAD, V2_HEAD = 19 + 8 + 1 + 1, 19 + 8 + 2 + 1 + 1


def image_size(row: tuple[int, str]) -> int:
    return len(KEYED.image(row))


@pytest.mark.parametrize(("kind", "head"), [(WRITE_V1, V1_HEAD), (None, V2_HEAD)])
def test_an_insert_has_the_offset_of_its_image_in_the_transaction(kind: int | None, head: int) -> None:
    log = LogBuilder()
    start = log.gtid()
    log.query("BEGIN")
    log.table_map(KEYED)
    event = log.write(KEYED, (1, "one"), (2, "deux"), **({"kind": kind} if kind else {}))
    log.xid()
    seqno, first = str(UNIT + log.end), event - start + head
    assert staged(bytes(log.data)).of("shop.orders") == [
        ["I", seqno, str(first), COMMITTED, "", "1", "one"],
        ["I", seqno, str(first + image_size((1, "one"))), COMMITTED, "", "2", "deux"],
    ]


@pytest.mark.parametrize(("kind", "head"), [(DELETE_V1, V1_HEAD), (None, V2_HEAD)])
def test_a_delete_has_the_whole_before_image(kind: int | None, head: int) -> None:
    log = LogBuilder()
    start = log.gtid()
    log.query("BEGIN")
    log.table_map(KEYED)
    event = log.delete(KEYED, (1, "one"), **({"kind": kind} if kind else {}))
    log.xid()
    assert staged(bytes(log.data)).of("shop.orders") == [
        ["D", str(UNIT + log.end), str(event - start + head), COMMITTED, "", "1", "one"]
    ]


def test_extra_data_of_a_row_event_is_passed_over() -> None:
    log = LogBuilder()
    start = log.gtid()
    log.query("BEGIN")
    log.table_map(KEYED)
    event = log.write(KEYED, (1, "one"), extra=b"\1\6\2\3\4\5\6")
    log.xid()
    assert staged(bytes(log.data)).of("shop.orders") == [
        ["I", str(UNIT + log.end), str(event - start + V2_HEAD + 7), COMMITTED, "", "1", "one"]
    ]


def update_log(table: Table, kind: int | None) -> tuple[bytes, int, int, str]:
    """One update that keeps the key and one that changes it: log, offsets of the two pairs, seqno."""
    log = LogBuilder()
    start = log.gtid()
    log.query("BEGIN")
    log.table_map(table)
    pairs = (((1, "old"), (1, "newer")), ((2, "b"), (3, "b")))
    event = log.update(table, *pairs, **({"kind": kind} if kind else {}))
    log.xid()
    first = event - start + (V1_HEAD + 1 if kind else V2_HEAD + 1)
    second = first + image_size((1, "old")) + image_size((1, "newer"))
    return bytes(log.data), first, second, str(UNIT + log.end)


@pytest.mark.parametrize("kind", [UPDATE_V1, None])
def test_an_update_is_one_record_and_one_of_the_key_is_two(kind: int | None) -> None:
    log, first, second, seqno = update_log(KEYED, kind)
    result = staged(log)
    assert [line[:3] + line[5:] for line in result.of("shop.orders")] == [
        ["U", seqno, str(first + image_size((1, "old"))), "1", "newer"],
        ["D", seqno, str(second), "2", "b"],
        ["I", seqno, str(second + image_size((2, "b"))), "3", "b"],
    ]
    (counts,) = result.counts.values()
    assert (counts.inserts, counts.updates, counts.deletes) == (1, 1, 1)


@pytest.mark.parametrize(("table", "every"), [(KEYED, True), (KEYLESS, False), (KEYLESS, True)])
def test_every_update_is_two_records_in_both_mode_and_without_a_key(table: Table, every: bool) -> None:
    log, first, second, _ = update_log(table, None)
    result = staged(log, every_update=every)
    assert [[line[0], line[2], *line[5:]] for line in result.of(f"shop.{table.name}")] == [
        ["D", str(first), "1", "old"],
        ["I", str(first + image_size((1, "old"))), "1", "newer"],
        ["D", str(second), "2", "b"],
        ["I", str(second + image_size((2, "b"))), "3", "b"],
    ]
    (counts,) = result.counts.values()
    assert (counts.inserts, counts.updates, counts.deletes) == (2, 0, 2)


def test_a_part_of_a_composite_key_that_changes_changes_the_key() -> None:
    table = Table("shop", "items", (varchar("sku"), integer("n"), integer("line")), key=(2, 0))
    log = LogBuilder().begin()
    log.table_map(table)
    log.update(table, (("a", 1, 1), ("a", 2, 1)), (("a", 1, 1), ("ab", 1, 1)), (("a", 1, 1), ("b", 1, 1)))
    log.xid()
    assert [line[0] for line in staged(bytes(log.data)).of("shop.items")] == ["U", "D", "I", "D", "I"]


def test_the_commit_time_is_the_commit_event_s_where_the_gtid_has_none() -> None:
    log = LogBuilder(server="5.7.44-log")
    log.gtid(micros=0, seconds=SECONDS - 90)
    log.query("BEGIN", seconds=SECONDS - 60)
    log.table_map(KEYED)
    log.write(KEYED, (1, "one"))
    log.xid(seconds=SECONDS + 1)
    assert staged(bytes(log.data)).of("shop.orders")[0][3] == "2023-11-14 22:13:21.000000"


def test_the_seqno_is_the_transaction_s_end_shifted_by_the_generation() -> None:
    log = LogBuilder().insert(KEYED, (1, "one"))
    first = log.end
    log.insert(KEYED, (2, "two"), number=2)
    assert [line[1] for line in staged(bytes(log.data), shift=41).of("shop.orders")] == [
        str(42 * UNIT + first),
        str(42 * UNIT + log.end),
    ]


def test_null_and_the_empty_string_differ() -> None:
    log = LogBuilder().insert(KEYED, (1, None), (2, ""))
    text = next(iter(staged(bytes(log.data)).text.values()))
    assert [line.split(b",")[-1] for line in text.splitlines()] == [b"\\N", b'""']


def test_more_than_eight_columns_keep_their_null_bits_apart() -> None:
    table = Table("shop", "wide", tuple(integer(f"c{i}", 1) for i in range(19)))
    rows = [[None if (i * 7 + bit) % 5 == 0 and i else i for i in range(19)] for bit in range(5)]
    log = LogBuilder().insert(table, *rows)
    expected = [[None if value is None else str(value) for value in row] for row in rows]
    assert [line[5:] for line in staged(bytes(log.data)).of("shop.wide")] == expected


def test_microseconds_of_a_commit_are_written_whole() -> None:
    log = LogBuilder()
    log.begin(micros=MICROS // 1_000_000 * 1_000_000 + 7)
    log.table_map(KEYED)
    log.write(KEYED, (1, ""))
    log.xid()
    assert staged(bytes(log.data)).of("shop.orders")[0][3] == "2023-11-14 22:13:20.000007"
