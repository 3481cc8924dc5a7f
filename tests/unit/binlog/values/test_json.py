"""Binary JSON becomes the text that the server shows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import DataError, LoaderError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, json
from tests.unit.binlog.jsonb import Number, Opaque, document, text
from tests.unit.binlog.reading import staged
from tests.unit.binlog.values.test_floats import expected_double

TABLE = Table("s", "t", (json(),), key=())
MANY = settings(deadline=None, max_examples=150)


def column(*documents: bytes) -> list[str | None]:
    log = LogBuilder().insert(TABLE, *([one] for one in documents))
    return [line[5] for line in staged(bytes(log.data)).of("s.t")]


class Double(float):
    """A double whose text is the server's."""

    def __str__(self) -> str:
        found = expected_double(float(self))
        return found if "." in found or "e" in found else found + ".0"


WIDTHS = {
    5: (-(2**15), 2**15),
    6: (0, 2**16),
    7: (-(2**31), 2**31),
    8: (0, 2**32),
    9: (-(2**63), 2**63),
    10: (0, 2**64),
}
NUMBERS = st.one_of(
    *(st.integers(low, high - 1).map(lambda v, kind=kind: Number(v, kind)) for kind, (low, high) in WIDTHS.items())
)
STRINGS = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\/\b\f\n\r\t\0\x01\x1f\x7f'), max_size=40)
SIXTY = st.integers(0, 59)
OPAQUES = st.one_of(
    st.builds(Opaque.date, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31)),
    st.builds(Opaque.time, st.just(False), st.integers(0, 838), SIXTY, SIXTY, st.integers(0, 999_999)),
    st.builds(Opaque.time, st.just(True), st.integers(0, 838), SIXTY, SIXTY, st.integers(1, 999_999)),
    st.builds(Opaque.other, st.sampled_from([15, 16, 252, 253, 254]), st.binary(max_size=40)),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, STRINGS, OPAQUES, st.floats(allow_nan=False, allow_infinity=False).map(Double)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(STRINGS, inner, max_size=6), max_leaves=25
)


@MANY
@given(VALUES, st.booleans())
def test_any_document_in_small_and_large_form(value: Any, large: bool) -> None:
    assert column(document(value, large=large)) == [text(value)]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", list(WIDTHS))
def test_integers_of_every_width_inlined_and_not(kind: int, large: bool) -> None:
    low, high = WIDTHS[kind]
    value = [Number(low, kind), Number(high - 1, kind), {"k": Number(low, kind)}, Number(0, kind)]
    assert column(document(value, large=large), *(document(Number(n, kind)) for n in (low, high - 1))) == [
        text(value), str(low), str(high - 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"), (True, "true"), (False, "false"), ({}, "{}"), ([], "[]"), ("", '""'),
        ([[], {}, ""], '[[], {}, ""]'), ({"b": 1, "a": 2, "ab": 3}, '{"a": 2, "b": 1, "ab": 3}'),
        (Double(1.0), "1.0"), (Double(-0.0), "-0.0"), (Double(1e20), "1e20"), (Double(0.1), "0.1"),
        (Double(1e15), "1e15"), (Double(123456789.0), "123456789.0"),
        ('q"\\/\b\f\n\r\t', '"q\\"\\\\/\\b\\f\\n\\r\\t"'), ("\0\x01\x1f\x7f", '"\\u0000\\u0001\\u001f\x7f"'),
        ("é€😀\u2028", '"é€😀\u2028"'), ({"\n": 1}, '{"\\n": 1}'),
        (Opaque.decimal(Decimal("-12345.6789"), 20, 4), "-12345.6789"), (Opaque.decimal(Decimal("7"), 5, 0), "7"),
        (Opaque.decimal(Decimal(10**65 - 1), 72, 0), "9" * 65), (Opaque.decimal(Decimal("-0.25"), 66, 30), f"-0.25{'0' * 28}"),
        (Opaque.date(2012, 3, 18), '"2012-03-18"'), (Opaque.date(0, 0, 0), '"0000-00-00"'),
        (Opaque.datetime((2012, 3, 18, 11, 30, 45, 0)), '"2012-03-18 11:30:45.000000"'),
        (Opaque.datetime((9999, 12, 31, 23, 59, 59, 999_999), 7), '"9999-12-31 23:59:59.999999"'),
        (Opaque.time(False, 87, 31, 46, 654_321), '"87:31:46.654321"'),
        (Opaque.time(True, 838, 59, 59, 0), '"-838:59:59.000000"'),
        (Opaque.time(True, 0, 0, 0, 1), '"-00:00:00.000001"'),
        (Opaque.other(15, b"U"), '"base64:type15:VQ=="'), (Opaque.other(254, b""), '"base64:type254:"'),
    ],
)  # fmt: skip
def test_each_kind_of_value(value: Any, expected: str) -> None:
    assert column(document(value), document([value]), document({"k": value}, large=True)) == [
        expected, f"[{expected}]", f'{{"k": {expected}}}'
    ]  # fmt: skip


def test_the_dialect_s_escapes_lie_over_json_s() -> None:
    log = LogBuilder().insert(TABLE, [document('a"\\\n')])
    (line,) = next(iter(staged(bytes(log.data)).text.values())).splitlines()
    assert line.split(b",", 5)[5] == rb'"""a\\""\\\\\\n"""'


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v}, lambda v: [1, v, 2]])
def test_nesting_to_the_server_s_limit_of_100(wrap: Any, large: bool) -> None:
    value: Any = "deep"
    for _ in range(99):
        value = wrap(value)
    assert column(document([value], large=large)) == [text([value])]


def test_nesting_beyond_the_limit_is_an_error() -> None:
    value: Any = []
    for _ in range(200):
        value = [value]
    with pytest.raises(DataError, match="a value is not a json"):
        column(document(value, large=True))


def test_documents_longer_than_64_kib_and_strings_of_every_length_form() -> None:
    value = ["x" * 127, "y" * 128, "z" * 16_384, "é" * 40_000, list(range(30_000, 40_000))]
    assert column(document(value, large=True)) == [text(value)]


def test_holes_left_by_an_update_in_place_are_not_read() -> None:
    raw = bytearray(document({"a": "longer", "b": [1, 2]}))
    at = raw.index(b"\x06longer")
    raw[at : at + 7] = b"\x03abc\xff\xff\xff"
    assert column(bytes(raw)) == ['{"a": "abc", "b": [1, 2]}']


def test_members_in_any_place_are_found_by_their_offsets() -> None:
    # [ "x", "y" ] with the second member's bytes before the first's
    raw = bytes([2]) + b"\x02\x00\x0e\x00" + b"\x0c\x0c\x00" + b"\x0c\x0a\x00" + b"\x01y" + b"\x01x"
    assert column(raw) == ['["x", "y"]']


def test_an_empty_value_is_null_as_the_server_shows_it() -> None:
    assert column(b"") == ["null"]


@settings(deadline=None, max_examples=300)
@given(VALUES, st.booleans(), st.data())
def test_damaged_documents_end_in_text_or_in_an_error_of_the_loader(
    value: Any, large: bool, data: st.DataObject
) -> None:
    raw = bytearray(document(value, large=large))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))]) if data.draw(st.booleans()) else bytes(raw)
    try:
        (found,) = column(cut)
    except LoaderError as error:
        assert error.exit_code == 4
    else:
        assert found is not None
        assert found.encode()


def test_a_container_inside_itself_is_an_error() -> None:
    with pytest.raises(DataError, match="a value is not a json"):
        column(bytes([2]) + b"\x02\x00\x0a\x00" + b"\x02\x00\x00" + b"\x02\x00\x00")
