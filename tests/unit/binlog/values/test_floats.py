"""FLOAT and DOUBLE: the shortest text that reads back to the same bits, in the server's layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from loader.binlog.native.compiler import kernel
from loader.binlog.values.floats import put_double, put_float

Ints = NDArray[np.uint64]
_LONGEST = 48


@kernel("int64(uint64[::1], uint8[::1])")
def put_doubles(bits: Ints, out: NDArray[np.uint8]) -> int:
    at = 0
    for i in range(len(bits)):
        at = put_double(out, at, bits[i])
        out[at] = 10
        at += 1
    return at


@kernel("int64(uint64[::1], uint8[::1])")
def put_floats(bits: Ints, out: NDArray[np.uint8]) -> int:
    at = 0
    for i in range(len(bits)):
        at = put_float(out, at, bits[i])
        out[at] = 10
        at += 1
    return at


def texts(put: Callable[[Any, Any], int], bits: Ints) -> list[str]:
    out = np.empty(len(bits) * _LONGEST, np.uint8)
    return out[: put(bits, out)].tobytes().decode().split("\n")[:-1]


def doubles(*numbers: float) -> list[str]:
    return texts(put_doubles, np.array(numbers, np.float64).view(np.uint64))


def floats(*numbers: float) -> list[str]:
    return texts(put_floats, np.array(numbers, np.float32).view(np.uint32).astype(np.uint64))


def laid_out(scientific: str) -> str:
    """`d.ddde±xx` in the server's layout: plain while the point is at most 15 places away, or before the last digit."""
    mantissa, exponent = scientific.split("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    digits = mantissa.replace(".", "").rstrip("0")
    point = int(exponent) + 1
    if not digits:
        return sign + "0"
    if point < -14 or (point > 15 and point >= len(digits)):
        return f"{sign}{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def scientific(number: float) -> str:
    """Python's shortest digits of a double, as `d.ddde±xx`."""
    text = repr(number)
    if "e" in text:
        return text
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    whole, _, rest = text.partition(".")
    digits = (whole + rest).lstrip("0")
    exponent = len(whole) - 1 if whole.strip("0") else -(len(rest) - len(rest.lstrip("0")) + 1)
    return f"{sign}{digits[:1] or '0'}.{digits[1:]}e{exponent if digits else 0}"


def expected_double(number: float) -> str:
    return laid_out(scientific(number))


def expected_float(number: np.float32) -> str:
    return laid_out(np.format_float_scientific(number, unique=True))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(0, 2**52 - 1))
def test_every_double_is_python_s_shortest_digits(seed: int, mask: int) -> None:
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2**64, 10_000, np.uint64)
    bits[::3] &= ~np.uint64(mask)  # short and round fractions
    numbers = bits.view(np.float64)
    finite = numbers[np.isfinite(numbers)]
    assert texts(put_doubles, finite.view(np.uint64)) == [expected_double(number) for number in finite.tolist()]


@settings(deadline=None, max_examples=100)
@given(arrays(np.float64, 1000, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_the_doubles_that_hypothesis_finds_interesting(numbers: NDArray[np.float64]) -> None:
    assert doubles(*numbers) == [expected_double(number) for number in numbers.tolist()]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(0, 2**23 - 1))
def test_every_float_is_numpy_s_shortest_digits(seed: int, mask: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2**32, 5_000, np.uint32)
    bits[::3] &= ~np.uint32(mask)
    numbers = bits.view(np.float32)
    finite = numbers[np.isfinite(numbers)]
    assert floats(*finite) == [expected_float(number) for number in finite]


def test_all_powers_of_two_and_of_ten_with_their_neighbours() -> None:
    powers = np.array([2.0**n for n in range(-1074, 1024)] + [float(f"1e{n}") for n in range(-323, 309)])
    numbers = np.concatenate([powers, np.nextafter(powers, 0), np.nextafter(powers, np.inf)])
    numbers = numbers[np.isfinite(numbers)]
    assert doubles(*numbers, *-numbers) == [expected_double(n) for n in [*numbers.tolist(), *(-numbers).tolist()]]


def test_all_float_powers_of_two_read_back() -> None:
    powers = np.array([2.0**n for n in range(-149, 128)], np.float32)
    numbers = np.concatenate([powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf))])
    numbers = numbers[np.isfinite(numbers)]
    found = floats(*numbers)
    assert (np.array(found, np.float32) == numbers).all()
    assert [len(text) for text in found] == [len(expected_float(number)) for number in numbers]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"), (-0.0, "-0"), (1.0, "1"), (-1.0, "-1"), (0.1, "0.1"), (100.0, "100"), (1.5, "1.5"),
        (1e14, "100000000000000"), (999999999999999.0, "999999999999999"), (1e15, "1e15"), (1.25e15, "1.25e15"),
        (1e-15, "0.000000000000001"), (1.5e-15, "0.0000000000000015"), (1e-16, "1e-16"), (1.5e-16, "1.5e-16"),
        (123456789012345.6, "123456789012345.6"), (1.7976931348623157e308, "1.7976931348623157e308"),
        (2.2250738585072014e-308, "2.2250738585072014e-308"), (5e-324, "5e-324"), (-1e100, "-1e100"),
        (9007199254740993.0, "9.007199254740992e15"), (1157129286019149.2, "1157129286019149.2"), (0.3, "0.3"), (2 / 3, "0.6666666666666666"),
    ],
)  # fmt: skip
def test_layout_of_doubles(number: float, text: str) -> None:
    assert doubles(number) == [text]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"), (0.1, "0.1"), (3.4028235e38, "3.4028235e38"), (1.1754944e-38, "1.1754944e-38"), (1e-45, "1e-45"),
        (16777216.0, "16777216"), (1e15, "1e15"), (-2.5, "-2.5"), (1 / 3, "0.33333334"),
    ],
)  # fmt: skip
def test_layout_of_floats(number: float, text: str) -> None:
    assert floats(number) == [text]
