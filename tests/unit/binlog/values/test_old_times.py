"""Temporal values in the formats before MySQL 5.6: decoded if the number of digits is known, else refused by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from datetime import datetime as Moment  # noqa: N812 - the column type has the name
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import DataError, LoaderError, UnsupportedError
from loader.model.table import Column, TableName, TableSchema
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Field, Table, integer
from tests.unit.binlog.reading import staged, walked

MANY = settings(deadline=None, max_examples=80)
WIRE = {"timestamp": 7, "time": 11, "datetime": 12}
SIZES = {"timestamp": (4, 5, 5, 6, 6, 7, 7), "datetime": (8, 6, 6, 7, 7, 7, 8), "time": (3, 4, 4, 5, 5, 5, 6)}
DIGITS = range(7)


def pack(kind: str, digits: int, value: tuple[int, ...]) -> bytes:
    """A value: seconds and a fraction; (year, ..., second, fraction); or (negative, hours, minutes, seconds, fraction)."""
    size, fraction = SIZES[kind][digits], value[-1]
    if kind == "timestamp":
        return value[0].to_bytes(4, "big" if digits else "little") + fraction.to_bytes(size - 4, "big")
    if kind == "datetime":
        y, mo, d, h, mi, s = value[:6]
        if not digits:
            return int(f"{y:04}{mo:02}{d:02}{h:02}{mi:02}{s:02}").to_bytes(8, "little")
        seconds = ((((y * 13 + mo) * 32 + d) * 24 + h) * 60 + mi) * 60 + s
        return (seconds * 10**digits + fraction).to_bytes(size, "big")
    negative, h, mi, s = value[:4]
    sign = -1 if negative else 1
    if not digits:
        return (sign * int(f"{h}{mi:02}{s:02}")).to_bytes(3, "little", signed=True)
    units = ((h * 60 + mi) * 60 + s) * 10**digits + fraction
    return (sign * units + 3020400 * 10**digits).to_bytes(size, "big")


def shown(kind: str, digits: int, value: tuple[int, ...]) -> str:
    """The server's text of a value."""
    fraction = f".{value[-1]:0{digits}}" if digits else ""
    if kind == "timestamp":
        zero = not value[0] and not value[1]
        moment = Moment.fromtimestamp(value[0], UTC)
        return ("0000-00-00 00:00:00" if zero else f"{moment:%Y-%m-%d %H:%M:%S}") + fraction
    if kind == "datetime":
        y, mo, d, h, mi, s = value[:6]
        return f"{y:04}-{mo:02}-{d:02} {h:02}:{mi:02}:{s:02}{fraction}"
    negative, h, mi, s = value[:4]
    return f"{'-' if negative and any(value[1:]) else ''}{h:02}:{mi:02}:{s:02}{fraction}"


def table_of(kind: str) -> Table:
    raw: Callable[[Any], bytes] = lambda value: value  # noqa: E731
    return Table("s", "t", (Field("v", WIRE[kind], b"", raw), integer("n")), key=())


def read(kind: str, digits: int, *raws: bytes, mariadb: bool = True) -> list[str | None]:
    """The values as they are staged, with the digits that the server told."""
    told = TableSchema(TableName("s", "t"), (Column("v", kind, size=digits), Column("n", "int")), ())
    log = LogBuilder().insert(table_of(kind), *((raw, n) for n, raw in enumerate(raws)))
    lines = staged(bytes(log.data), mariadb=mariadb, known=told if mariadb else None).of("s.t")
    assert [line[6] for line in lines] == [str(n) for n in range(len(raws))]
    return [line[5] for line in lines]


SIXTY = st.integers(0, 59)
PARTS = {
    "timestamp": st.tuples(st.integers(0, 2**32 - 1)),
    "datetime": st.tuples(
        st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31), st.integers(0, 23), SIXTY, SIXTY
    ),
    "time": st.tuples(st.booleans(), st.integers(0, 838), SIXTY, SIXTY),
}  # fmt: skip


@MANY
@given(st.sampled_from(list(WIRE)), st.integers(0, 6), st.data())
def test_every_value_of_every_fraction(kind: str, digits: int, data: st.DataObject) -> None:
    fraction = st.tuples(st.integers(0, 10**digits - 1))
    values = [a + b for a, b in data.draw(st.lists(st.tuples(PARTS[kind], fraction), min_size=1, max_size=30))]
    assert read(kind, digits, *(pack(kind, digits, v) for v in values)) == [shown(kind, digits, v) for v in values]


@pytest.mark.parametrize("kind", WIRE)
def test_those_of_mysql_have_no_fractions(kind: str) -> None:
    value = {"timestamp": (1_700_000_000, 0), "datetime": (2024, 2, 29, 23, 59, 58, 0), "time": (True, 838, 59, 59, 0)}[
        kind
    ]
    assert read(kind, 0, pack(kind, 0, value), mariadb=False) == [shown(kind, 0, value)]


@pytest.mark.parametrize("kind", WIRE)
def test_without_what_the_server_says_those_of_mariadb_are_refused_by_column(kind: str) -> None:
    log = LogBuilder().begin()
    at = log.table_map(table_of(kind))
    log.xid()
    other = TableSchema(TableName("s", "t"), (Column("w", kind), Column("v", "int")), ())
    for known in (None, other):
        with pytest.raises(
            UnsupportedError, match=f"a {kind.upper()} column in the old format cannot be read"
        ) as caught:
            staged(bytes(log.data), mariadb=True, known=known)
        assert caught.value.where == {"file": "binlog.000001", "position": str(at), "table": "s.t", "column": "v"}
    assert len(walked(bytes(log.data), captured=lambda _: False).transactions) == 1


BAD = [
    ("datetime", 0, (20241301000000).to_bytes(8, "little")), ("datetime", 0, (20241232000000).to_bytes(8, "little")),
    ("datetime", 0, (20241231240000).to_bytes(8, "little")), ("datetime", 0, b"\xff" * 8), ("datetime", 0, b"\xff" * 7 + b"\x7f"),
    ("datetime", 6, b"\xff" * 8), ("datetime", 6, b"\x7f" + b"\xff" * 7), ("datetime", 1, b"\xff" * 6),
    ("time", 0, (8386000).to_bytes(3, "little", signed=True)), ("time", 0, (-126060).to_bytes(3, "little", signed=True)),
    ("time", 6, b"\xff" * 6), ("time", 1, b"\xff" * 4), ("timestamp", 1, bytes(4) + b"\x0a"),
    ("timestamp", 6, bytes(4) + (10**6).to_bytes(3, "big")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "digits", "raw"), BAD)
def test_what_is_no_time_is_named(kind: str, digits: int, raw: bytes) -> None:
    with pytest.raises(DataError, match=f"a value is not a {kind}") as caught:
        read(kind, digits, raw)
    assert caught.value.where["column"] == "v"


@MANY
@given(st.sampled_from(list(WIRE)), st.integers(0, 6), st.data())
def test_any_bytes_are_a_time_or_an_error(kind: str, digits: int, data: st.DataObject) -> None:
    size = SIZES[kind][digits]
    try:
        assert read(kind, digits, data.draw(st.binary(min_size=size, max_size=size)))
    except LoaderError as error:
        assert error.exit_code == 4
