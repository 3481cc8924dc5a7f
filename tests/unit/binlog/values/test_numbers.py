"""Integers, BIT and DECIMAL of row images."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Field, Table, bit, decimal, decimal_bytes, integer, year
from tests.unit.binlog.reading import staged


def column(field: Field, *values: Any) -> list[str | None]:
    """The staged text of these values of one column."""
    table = Table("s", "t", (field,), key=())
    log = LogBuilder().insert(table, *([value] for value in values))
    return [line[5] for line in staged(bytes(log.data)).of("s.t")]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("unsigned", [False, True])
def test_integers_at_their_edges(size: int, unsigned: bool) -> None:
    low, high = (0, 2 ** (8 * size) - 1) if unsigned else (-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1)
    values = [low, low + 1, 0, 1, 9, 10, 99, 100, high - 1, high]
    assert column(integer("n", size, unsigned=unsigned), *values) == [str(value) for value in values]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 4, 8]), st.booleans())
def test_integers_are_exact(seed: int, size: int, unsigned: bool) -> None:
    raw = np.random.default_rng(seed).bytes(size * 500)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    values = [int.from_bytes(piece, "little", signed=not unsigned) for piece in pieces]
    assert column(integer("n", size, unsigned=unsigned), *values) == [str(value) for value in values]


@pytest.mark.parametrize("width", range(1, 65))
def test_bit_is_an_unsigned_integer(width: int) -> None:
    values = [0, 1, 2 ** (width - 1), 2**width - 1, 0xA5A5A5A5A5A5A5A5 % 2**width]
    assert column(bit("t", width), *values) == [str(value) for value in values]


def test_year_zero_has_four_digits_and_others_count_from_1900() -> None:
    assert column(year(), 0, 1901, 1970, 2155) == ["0000", "1901", "1970", "2155"]


SHAPES = [(precision, scale) for precision in range(1, 66) for scale in range(min(precision, 30) + 1)]


EXACT = Context(prec=80)
DIGITS = st.integers(0, 10**65 - 1) | st.sampled_from([0, 1, 10**9, 10**18 - 1, 10**65 - 1])


def shaped(digits: int, negative: bool, precision: int, scale: int) -> Decimal:
    """A value of DECIMAL(precision, scale); there is no negative zero."""
    whole = digits % 10**precision
    return Decimal(-whole if negative else whole).scaleb(-scale, EXACT)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(SHAPES), DIGITS, st.booleans()), min_size=1, max_size=60))
def test_decimals_are_exact_for_every_precision_and_scale(drawn: list[tuple[tuple[int, int], int, bool]]) -> None:
    table = Table("s", "t", tuple(decimal(f"d{i}", *shape) for i, (shape, _, _) in enumerate(drawn)), key=())
    values = [shaped(digits, negative, *shape) for shape, digits, negative in drawn]
    (line,) = staged(bytes(LogBuilder().insert(table, values).data)).of("s.t")
    assert line[5:] == [f"{value:.{shape[1]}f}" for value, (shape, _, _) in zip(values, drawn, strict=True)]


def test_every_shape_of_decimal_at_its_edges() -> None:
    table = Table("s", "t", tuple(decimal(f"d{p}_{s}", p, s) for p, s in SHAPES), key=())
    rows = []
    for negative in (False, True):
        rows.append([shaped(10**p - 1, negative, p, s) for p, s in SHAPES])
        rows.append([shaped(1, negative, p, s) for p, s in SHAPES])
        rows.append([shaped(int("10" * 33), negative, p, s) for p, s in SHAPES])
    rows.append([Decimal(0) for _ in SHAPES])
    found = staged(bytes(LogBuilder().insert(table, *rows).data)).of("s.t")
    wanted = [[f"{value:.{s}f}" for value, (_, s) in zip(row, SHAPES, strict=True)] for row in rows]
    assert [line[5:] for line in found] == wanted


@pytest.mark.parametrize(
    ("raw", "shape", "text"),
    [
        ("810dfb38d204d2", (14, 4), "1234567890.1234"),
        ("7ef204c72dfb2d", (14, 4), "-1234567890.1234"),
        ("80000000", (8, 2), "0.00"),
    ],
)
def test_the_manual_s_examples(raw: str, shape: tuple[int, int], text: str) -> None:
    field = decimal("d", *shape)
    literal = Field(field.name, field.wire, field.metadata, lambda value: value)
    assert column(literal, bytes.fromhex(raw)) == [text]


def test_the_reference_encoder_agrees_with_the_manual() -> None:
    assert decimal_bytes(Decimal("1234567890.1234"), 14, 4).hex() == "810dfb38d204d2"
    assert decimal_bytes(Decimal("-1234567890.1234"), 14, 4).hex() == "7ef204c72dfb2d"
