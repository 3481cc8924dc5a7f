"""Values: conversions, and what has no form in Python or is not there."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import StagedDataError
from loader.model.table import Column, TableName, TableSchema
from loader.reader.dialect import fields_of
from loader.reader.rows import changes_of
from loader.reader.values import ConversionError, PartialDate, Value
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, varchar
from tests.unit.binlog.reading import staged


def value(kind: str, text: str | None, **column: Any) -> Value:
    return Value(Column("c", kind, **column), text)


@pytest.mark.parametrize(
    ("kind", "text", "native"),
    [
        ("bigint", "18446744073709551615", 2**64 - 1),
        ("tinyint", "-128", -128),
        ("bit", "5", 5),
        ("year", "0000", 0),
        ("decimal", "-0.10", Decimal("-0.10")),
        ("double", "1e308", 1e308),
        ("float", "0.1", 0.1),
        ("varchar", "", ""),
        ("varchar", "\\N", "\\N"),
        ("json", '{"a": 1.00}', '{"a": 1.00}'),
        ("enum", "one", "one"),
        ("set", "one,two", frozenset({"one", "two"})),
        ("set", "", frozenset()),
        ("blob", "", b""),
        ("varbinary", "00ff", b"\0\xff"),
        ("geometry", "e6100000", b"\xe6\x10\0\0"),
        ("vector", "[1,2.5]", "[1,2.5]"),
        ("date", "2026-01-31", date(2026, 1, 31)),
        ("datetime", "2026-01-31 12:00:00.120000", datetime(2026, 1, 31, 12, 0, 0, 120_000)),
        ("datetime", "2026-01-31 12:00:00.1", datetime(2026, 1, 31, 12, 0, 0, 100_000)),
        ("timestamp", "2026-01-31 12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("date", "0000-00-00", PartialDate("0000-00-00")),
        ("date", "2024-02-00", PartialDate("2024-02-00")),
        ("datetime", "0000-00-00 00:00:00.00", PartialDate("0000-00-00 00:00:00.00")),
        ("timestamp", "0000-00-00 00:00:00", PartialDate("0000-00-00 00:00:00")),
        ("time", "-838:59:59.000001", -timedelta(hours=838, minutes=59, seconds=59, microseconds=1)),
        ("time", "00:00:00.5", timedelta(microseconds=500_000)),
    ],
)
def test_native_values(kind: str, text: str, native: object) -> None:
    found = value(kind, text).native()
    assert found == native
    assert type(found) is type(native)


def test_null_absent_and_empty_are_three_things() -> None:
    null, absent, empty = value("varchar", None), Value(Column("c", "varchar"), None, True), value("varchar", "")
    assert [(v.is_null, v.is_absent) for v in (null, absent, empty)] == [(True, False), (False, True), (False, False)]
    for name in (
        "as_text", "as_int", "as_decimal", "as_float", "as_bytes", "as_datetime", "as_date", "as_timedelta", "as_labels",
        "native",
    ):  # fmt: skip
        assert getattr(null, name)() is None
        with pytest.raises(ConversionError, match="absent"):
            getattr(absent, name)()
    assert (empty.as_text(), empty.as_bytes()) == ("", b"")


def test_conversions_between_kinds() -> None:
    assert value("decimal", "12.00").as_int() == 12
    assert value("int", "12").as_decimal() == Decimal(12)
    assert value("decimal", "0.1").as_float() == 0.1
    assert value("varchar", "é").as_bytes() == "é".encode()
    assert value("date", "2026-01-31").as_datetime() == datetime(2026, 1, 31)
    assert value("timestamp", "2026-01-31 23:59:59").as_date() == date(2026, 1, 31)
    assert value("enum", "one").as_labels() == frozenset({"one"})
    assert value("int", "7").as_text() == "7"


@pytest.mark.parametrize(
    ("kind", "text", "conversion"),
    [
        ("varchar", "x", "as_int"),
        ("decimal", "0.5", "as_int"),
        ("varchar", "", "as_decimal"),
        ("date", "0000-00-00", "as_datetime"),
        ("date", "2024-00-10", "as_date"),
        ("varchar", "1:2", "as_timedelta"),
    ],
)
def test_what_has_no_such_form_is_refused_by_name(kind: str, text: str, conversion: str) -> None:
    with pytest.raises(ConversionError, match=repr(text)) as raised:
        getattr(value(kind, text), conversion)()
    assert raised.value.where["column"] == "c"


@given(st.timedeltas(timedelta(hours=-838), timedelta(hours=838)))
def test_spans_of_time_come_back(span: timedelta) -> None:
    size = abs(span)
    minutes, seconds = divmod(size.days * 86400 + size.seconds, 60)
    text = f"{'-' if span < timedelta() else ''}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{size.microseconds:06d}"
    assert value("time", text).as_timedelta() == span


TEXTS = Table("s", "t", (varchar("a"), varchar("b")))


@given(
    st.lists(st.tuples(*[st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=60)] * 2), min_size=1)
)
def test_every_text_comes_back_from_its_staged_line(rows: list[tuple[str | None, str | None]]) -> None:
    log = LogBuilder().insert(TEXTS, *rows)
    ((schema, lines),) = staged(bytes(log.data)).text.items()
    found = [change.after for change in changes_of(lines, schema, update=False)]
    assert [(row["a"].as_text(), row["b"].as_text()) for row in found if row] == rows


@pytest.mark.parametrize("line", ['"a', '"a"b', 'a"b', '"a""'])
def test_lines_that_are_not_of_the_dialect(line: str) -> None:
    with pytest.raises(StagedDataError):
        fields_of(line)


def test_absent_columns_by_their_bitmap_and_lines_of_another_table() -> None:
    schema = TableSchema(TableName("s", "t"), tuple(Column(f"c{n}", "int") for n in range(9)), ())
    line = b"I,1,5,2026-01-01 00:00:00.000000,0201," + b",".join([b"\\N"] * 9) + b"\n"
    (change,) = changes_of(line, schema, update=False)
    assert change.after
    assert [v.column.name for v in change.after if v.is_absent] == ["c1", "c8"]
    assert list(change.after.as_dict()) == ["c0", "c2", "c3", "c4", "c5", "c6", "c7"]
    with pytest.raises(StagedDataError, match="columns"):
        list(changes_of(line.replace(b",\\N\n", b"\n"), schema, update=False))
