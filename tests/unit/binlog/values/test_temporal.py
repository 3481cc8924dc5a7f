"""DATE, DATETIME, TIMESTAMP and TIME of row images, with their zeroes, edges and fractions."""

from __future__ import annotations

from datetime import UTC, timedelta
from datetime import datetime as Moment  # noqa: N812 - the column type has the name
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Field, Table, date, datetime, time, timestamp
from tests.unit.binlog.reading import staged

FRACTION = range(7)
MANY = settings(deadline=None, max_examples=60)
MICROS = st.integers(0, 999_999) | st.sampled_from([0, 1, 999_999, 100_000, 9])


def column(field: Field, *values: Any) -> list[str | None]:
    table = Table("s", "t", (field,), key=())
    log = LogBuilder().insert(table, *([value] for value in values))
    return [line[5] for line in staged(bytes(log.data)).of("s.t")]


def fraction(micros: int, digits: int) -> str:
    return "." + f"{micros:06d}"[:digits] if digits else ""


def test_dates_with_zero_parts_are_kept() -> None:
    values = [(0, 0, 0), (2024, 0, 15), (2024, 2, 0), (0, 1, 1), (1000, 1, 1), (9999, 12, 31), (2024, 2, 29)]
    assert column(date(), *values) == [f"{y:04d}-{m:02d}-{d:02d}" for y, m, d in values]


@MANY
@given(st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31)), min_size=1, max_size=200))
def test_every_date(values: list[tuple[int, int, int]]) -> None:
    assert column(date(), *values) == [f"{y:04d}-{m:02d}-{d:02d}" for y, m, d in values]


PARTS = st.tuples(
    st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31), st.integers(0, 23), st.integers(0, 59),
    st.integers(0, 59), MICROS,
)  # fmt: skip


@MANY
@given(st.integers(0, 6), st.lists(PARTS, min_size=1, max_size=100))
def test_every_datetime(digits: int, values: list[tuple[int, ...]]) -> None:
    expected = [
        f"{y:04d}-{mo:02d}-{d:02d} {h:02d}:{mi:02d}:{s:02d}" + fraction(us, digits) for y, mo, d, h, mi, s, us in values
    ]
    assert column(datetime("at", digits), *values) == expected


@pytest.mark.parametrize("digits", FRACTION)
def test_datetime_at_its_edges(digits: int) -> None:
    values = [
        (0, 0, 0, 0, 0, 0, 0),
        (1000, 1, 1, 0, 0, 0, 0),
        (9999, 12, 31, 23, 59, 59, 999_999),
        (2024, 0, 0, 1, 2, 3, 40),
    ]
    assert column(datetime("at", digits), *values) == [
        "0000-00-00 00:00:00" + fraction(0, digits),
        "1000-01-01 00:00:00" + fraction(0, digits),
        "9999-12-31 23:59:59" + fraction(999_999, digits),
        "2024-00-00 01:02:03" + fraction(40, digits),
    ]


@MANY
@given(st.integers(0, 6), st.lists(st.tuples(st.integers(1, 2**32 - 1), MICROS), min_size=1, max_size=100))
def test_every_timestamp_is_utc(digits: int, values: list[tuple[int, int]]) -> None:
    expected = [f"{Moment.fromtimestamp(s, UTC):%Y-%m-%d %H:%M:%S}" + fraction(us, digits) for s, us in values]
    assert column(timestamp("ts", digits), *values) == expected


@pytest.mark.parametrize("digits", FRACTION)
def test_timestamp_zero_is_the_zero_date_and_not_1970(digits: int) -> None:
    assert column(timestamp("ts", digits), (0, 0), (1, 0), (2**31 - 1, 999_999), (2**32 - 1, 0)) == [
        "0000-00-00 00:00:00" + fraction(0, digits),
        "1970-01-01 00:00:01" + fraction(0, digits),
        "2038-01-19 03:14:07" + fraction(999_999, digits),
        "2106-02-07 06:28:15" + fraction(0, digits),
    ]


CLOCK = st.tuples(st.booleans(), st.integers(0, 838), st.integers(0, 59), st.integers(0, 59), MICROS)


def clock(value: tuple[bool, int, int, int, int], digits: int) -> str:
    negative, hours, minutes, seconds, micros = value
    kept = micros // 10 ** (6 - digits)
    sign = "-" if negative and (hours or minutes or seconds or kept) else ""
    return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}" + fraction(micros, digits)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 6), st.lists(CLOCK, min_size=1, max_size=200))
def test_every_time_with_its_sign_and_fraction(digits: int, values: list[tuple[bool, int, int, int, int]]) -> None:
    assert column(time("tm", digits), *values) == [clock(value, digits) for value in values]


@pytest.mark.parametrize(
    ("digits", "value", "text"),
    [
        (0, (True, 838, 59, 59, 0), "-838:59:59"), (0, (False, 838, 59, 59, 0), "838:59:59"),
        (0, (True, 507, 48, 27, 0), "-507:48:27"), (0, (False, 0, 0, 0, 0), "00:00:00"),
        (6, (True, 0, 0, 0, 1), "-00:00:00.000001"), (6, (True, 838, 59, 59, 0), "-838:59:59.000000"),
        (6, (True, 0, 0, 1, 500_000), "-00:00:01.500000"), (2, (True, 0, 0, 0, 10_000), "-00:00:00.01"),
        (1, (True, 12, 34, 56, 900_000), "-12:34:56.9"), (3, (True, 100, 0, 0, 1_000), "-100:00:00.001"),
        (4, (True, 0, 59, 59, 999_900), "-00:59:59.9999"), (5, (False, 99, 59, 59, 999_990), "99:59:59.99999"),
    ],
)  # fmt: skip
def test_time_at_its_edges(digits: int, value: tuple[bool, int, int, int, int], text: str) -> None:
    assert column(time("tm", digits), value) == [text]


@pytest.mark.parametrize(
    ("digits", "raw", "text"),
    [
        (0, "7fffff", "-00:00:01"), (2, "7fffffff", "-00:00:00.01"), (2, "7fffff9d", "-00:00:00.99"),
        (2, "7fffff00", "-00:00:01.00"), (2, "7ffffeff", "-00:00:01.01"), (2, "7ffffef6", "-00:00:01.10"),
        (4, "7fffffffff", "-00:00:00.0001"), (4, "7ffffffff6", "-00:00:00.0010"),
        (6, "7fffffffffff", "-00:00:00.000001"),
        (0, "800001", "00:00:01"), (0, "800000", "00:00:00"),
    ],
)  # fmt: skip
def test_the_server_s_own_table_of_negative_times(digits: int, raw: str, text: str) -> None:
    """The values in the comment of TIME_from_longlong_time_packed in the server's my_time.cc."""
    literal = Field("tm", 19, bytes([digits]), lambda value: value)
    assert column(literal, bytes.fromhex(raw)) == [text]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 2**55 - 1).filter(lambda micros: micros < 253_402_300_800_000_000), min_size=1, max_size=20)
)
def test_commit_times_are_the_gtid_s_in_utc(commits: list[int]) -> None:
    table = Table("s", "t", (date(),), key=())
    log = LogBuilder()
    for micros in commits:
        log.begin(micros=micros or 1)
        log.table_map(table)
        log.write(table, [(2024, 1, 1)])
        log.xid()
    epoch = Moment(1970, 1, 1, tzinfo=UTC)
    expected = [f"{epoch + timedelta(microseconds=micros or 1):%Y-%m-%d %H:%M:%S.%f}" for micros in commits]
    assert [line[3] for line in staged(bytes(log.data)).of("s.t")] == expected
