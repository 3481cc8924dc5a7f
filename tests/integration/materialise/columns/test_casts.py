"""Values that break loaders: each comes out of the warehouse as it went into the staged file, or is refused by name."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from loader.materialise.spec import TableResult
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, fold, number, position, table

pytestmark = pytest.mark.integration

P0 = position(1, 1000)
CONTROLS = [chr(code) for code in (*range(0x20), 0x7F, 0x85, 0x2028, 0x2029, 0xFEFF, 0xFFFD)]
NASTY = [
    "",
    " ",
    " both ends ",
    "\t",
    "\\N",
    "\\n",
    "\\\\n",
    "\\0",
    "\\r",
    "\n",
    "\r\n",
    "\\\n",
    "\n\\",
    "\0\\\n\r\\0",
    "ends in \\",
    "ends in \\\\",
    '"',
    '""',
    '\\"',
    '"\\',
    'a"b,c"',
    ",",
    "null",
    "NULL",
    "#comment",
    "\ufeffbom",
    "a\u2028b",
    "😀 and \U0010ffff",
    "e\u0301 is not é",
    "${user.home} ${env:HOME} $1",
    "'; DROP TABLE x; --",
    *CONTROLS,
    *(f"a{control}b" for control in CONTROLS),
]
TEXTS = table(
    "texts",
    [
        Column("k", "varchar", charset="utf8mb4"),
        Column("v", "text", charset="utf8mb4"),
        Column("b", "blob"),
        Column("n", "int"),
    ],
    ["k"],
)


def test_every_nasty_text_is_a_key_and_a_value(lake: Lake) -> None:
    rows = [(f"{text}", text, text.encode(), place) for place, text in enumerate(dict.fromkeys(NASTY))]
    lake.one(lake.loaded(lake.staging.load(TEXTS, rows, P0, parts=3)))
    assert lake.rows(TEXTS) == {(row[0],): row for row in rows}
    changes = [Change("U", number(1, 1100), place, (*row[:3], -1)) for place, row in enumerate(rows)]
    lake.staging.interval(P0, position(1, 2000), [(TEXTS, changes)], parts=2)
    result = lake.one(lake.merged())
    assert (result.rows_deleted, result.rows_inserted) == (len(rows), len(rows))
    assert lake.rows(TEXTS) == fold(TEXTS, rows, 0, changes)


def test_empty_is_not_null(lake: Lake) -> None:
    rows = [("a", "", b"", None), ("b", None, None, 0), ("", "\\N", b"\\N", 1)]
    lake.one(lake.loaded(lake.staging.load(TEXTS, rows, P0)))
    assert lake.rows(TEXTS) == {(row[0],): row for row in rows}


def test_bytes_that_are_no_text_stay_hex(lake: Lake) -> None:
    raw = bytes([0x00, 0x5C, 0x6E, 0xFF])
    rows = [(b"\xff", raw, b"", 1), ("\\xff", "\\x005c6eff", b"", 2)]
    lake.one(lake.loaded(lake.staging.load(TEXTS, rows[:1], P0)))
    assert lake.rows(TEXTS) == {("\\xff",): ("\\xff", "\\x005c6eff", b"", 1)}
    lake.staging.interval(P0, position(1, 2000), [(TEXTS, [Change("D", number(1, 1100), 1, rows[0])])])
    lake.one(lake.merged())
    assert lake.rows(TEXTS) == {}


def test_keys_are_bytes_and_not_a_collation(lake: Lake) -> None:
    rows = [("a", "x", b"", 1), ("é", "x", b"", 2), ("b ", "x", b"", 3)]
    lake.one(lake.loaded(lake.staging.load(TEXTS, rows, P0)))
    changes = [
        Change("D", number(1, 1100), 1, ("a", "x", b"", 1)),
        Change("I", number(1, 1100), 2, ("A", "y", b"", 1)),
        Change("U", number(1, 1100), 3, ("b ", "z", b"", 3)),
    ]
    lake.staging.interval(P0, position(1, 2000), [(TEXTS, changes)])
    lake.one(lake.merged())
    assert lake.rows(TEXTS) == fold(TEXTS, rows, 0, changes)


COMPOSITE = table(
    "composite",
    [
        Column("v", "int"),
        Column("stamp", "timestamp", size=6),
        Column("raw", "binary", size=4),
        Column("at", "datetime"),
        Column("tag", "varchar", charset="latin1"),
        Column("amount", "decimal", size=10, scale=2),
    ],
    ["raw", "at", "tag", "amount", "stamp"],
)


def test_composite_key_in_another_order_than_the_columns(lake: Lake) -> None:
    def row(v, raw, tag="t", amount="1.50"):
        return (v, "2026-01-01 00:00:00.000001", raw, "1969-12-31 23:59:59", tag, amount)

    rows = [
        row(1, b"\0\0\0\1"),
        row(2, b"\xff\0\0\0"),
        row(3, b"\0\0\0\1", tag="t'"),
        row(4, b"\0\0\0\1", amount="-1.50"),
    ]
    lake.one(lake.loaded(lake.staging.load(COMPOSITE, rows, P0)))
    changes = [
        Change("U", number(1, 1100), 1, row(10, b"\0\0\0\1")),
        Change("D", number(1, 1100), 2, row(2, b"\xff\0\0\0")),
        Change("I", number(1, 1100), 3, row(11, b"\xff\xff\0\0")),
    ]
    lake.staging.interval(P0, position(1, 2000), [(COMPOSITE, changes)])
    result = lake.one(lake.merged())
    assert (result.rows_deleted, result.rows_inserted) == (2, 2)
    values = {row[0] for row in lake.rows(COMPOSITE).values()}
    assert values == {change[0] for change in fold(COMPOSITE, rows, 0, changes).values()} == {10, 3, 4, 11}


DATED = table("dated", [Column("id", "int"), Column("day", "date")], ["id"])


def failed(lake: Lake, result, status: str) -> TableResult:
    (table_result,) = result.tables
    assert table_result.status == status
    assert result.exit_code == 4
    return table_result


@pytest.mark.parametrize("day", ["0000-00-00", "2024-00-15", "2023-02-29"])
def test_a_value_that_does_not_fit_stops_the_table(lake: Lake, day: str) -> None:
    lake.one(lake.loaded(lake.staging.load(DATED, [(1, "2024-01-01")], P0)))
    head = lake.metadata(DATED).head
    changes = [
        Change("U", number(1, 1100), 1, (1, "2024-01-02")),
        Change("I", number(1, 1200), 1, (2, day)),
        Change("I", number(1, 1300), 1, (3, day)),
    ]
    lake.staging.interval(P0, position(1, 2000), [(DATED, changes)])
    error = failed(lake, lake.merged(), "quarantined").error
    assert error["error"] == "MisfitError"
    assert error["where"] == {
        "table": "shop.dated",
        "column": "day",
        "position": position(1, 1200),
        "seqno": str(number(1, 1200)),
    }
    assert day in error["why"]
    assert error["what"].startswith("2 values")
    assert lake.metadata(DATED).head == head
    assert list(lake.metadata(DATED).branches) == ["main"]


def test_a_bad_value_that_is_gone_again_stops_nothing(lake: Lake) -> None:
    lake.one(lake.loaded(lake.staging.load(DATED, [(1, "2024-01-01")], P0)))
    changes = [
        Change("I", number(1, 1100), 1, (2, "0000-00-00")),
        Change("D", number(1, 1200), 1, (2, "0000-00-00")),
        Change("U", number(1, 1300), 1, (1, "0000-00-00")),
        Change("U", number(1, 1400), 1, (1, "2024-05-05")),
    ]
    lake.staging.interval(P0, position(1, 2000), [(DATED, changes)])
    assert lake.one(lake.merged()).status == "applied"


def test_a_bad_value_in_an_initial_load_leaves_an_empty_table_that_heals(lake: Lake) -> None:
    key = lake.staging.load(DATED, [(1, "2024-01-01"), (2, "0000-00-00")], P0)
    error = failed(lake, lake.loaded(key), "failed").error
    assert (error["where"]["column"], error["where"]["position"]) == ("day", P0)
    assert lake.metadata(DATED).applied is None
    assert lake.one(lake.loaded(lake.staging.load(DATED, [(1, "2024-01-01")], position(1, 1001)))).status == "applied"
    assert len(lake.rows(DATED)) == 1


KEYS = st.integers(0, 5)
RECORDS = st.lists(st.tuples(st.sampled_from("IUD"), KEYS, st.integers(0, 3)), max_size=30)
SMALL = table("small", [Column("id", "int"), Column("v", "varchar", charset="utf8mb4")], ["id"])


@pytest.mark.timeout(120)
@hypothesis_settings(
    max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
@given(records=RECORDS, cuts=st.integers(1, 4), applied=st.integers(1000, 1006), data=st.data())
def test_any_split_into_intervals_and_files_equals_the_fold(
    records, cuts, applied, data, spark, tmp_path_factory
) -> None:
    lake = Lake(spark, tmp_path_factory.mktemp("split"))
    rows = [(key, "loaded") for key in range(3)]
    changes = [
        Change(op, number(1, 1001 + place // 3), place % 3, (key, f"{place}"))
        for place, (op, key, _) in enumerate(records)
    ]
    lake.one(lake.loaded(lake.staging.load(SMALL, rows, position(1, applied))))
    edges = sorted({1000, 1020, *(data.draw(st.integers(1001, 1019)) for _ in range(cuts))})
    for low, high in pairwise(edges):
        part = [c for c in changes if number(1, low) < c.seqno <= number(1, high)]
        data.draw(st.randoms(use_true_random=False)).shuffle(part)
        lake.staging.interval(position(1, low), position(1, high), [(SMALL, part)] if part else [], parts=2)
    lake.one(lake.merged())
    assert lake.rows(SMALL) == fold(SMALL, rows, number(1, applied), changes)
