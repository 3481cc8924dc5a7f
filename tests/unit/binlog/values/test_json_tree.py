"""JSON documents as trees, with the diffs of partial updates applied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.values.json_tree import apply_diffs, read_tree, write_tree
from loader.errors import BinlogFormatError
from tests.unit.binlog.builder import packed
from tests.unit.binlog.jsonb import Number, document

REPLACE, INSERT, REMOVE = range(3)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.text(max_size=20), st.floats(allow_nan=False, allow_infinity=False),
    st.builds(Number, st.integers(-(2**15), 2**15 - 1), st.just(5)), st.builds(Number, st.integers(0, 2**32 - 1), st.just(8)),
    st.builds(Number, st.integers(-(2**63), 2**63 - 1), st.just(9)),
)  # fmt: skip
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=8), inner, max_size=5)),
    max_leaves=20,
)


def canonical(raw: bytes) -> bytes:
    return write_tree(read_tree(raw))


def diff(operation: int, path: str, value: Any = None) -> bytes:
    raw = path.encode()
    encoded = document(value)
    return (
        bytes([operation]) + packed(len(raw)) + raw + (b"" if operation == REMOVE else packed(len(encoded)) + encoded)
    )


def changed(before: Any, *diffs: bytes) -> bytes:
    return write_tree(apply_diffs(read_tree(document(before)), b"".join(diffs)))


@settings(deadline=None, max_examples=300)
@given(DOCUMENTS)
def test_small_and_large_documents_are_the_same_tree(value: Any) -> None:
    assert read_tree(document(value)) == read_tree(document(value, large=True))
    assert read_tree(canonical(document(value))) == read_tree(document(value))
    assert canonical(canonical(document(value))) == canonical(document(value))


@pytest.mark.parametrize(
    ("before", "diffs", "after"),
    [
        ({"a": True}, [(REPLACE, "$.a", False)], {"a": False}),
        ({"a": [True, None]}, [(REPLACE, "$.a[1]", "x")], {"a": [True, "x"]}),
        ({}, [(INSERT, "$.b", {"c": []}), (INSERT, "$.b.c[7]", 1.5)], {"b": {"c": [1.5]}}),
        ([1.5, 2.5], [(INSERT, "$[1]", "x")], [1.5, "x", 2.5]),
        ([1.5, 2.5], [(INSERT, "$[9]", "x")], [1.5, 2.5, "x"]),
        ({"a": 1.5, "b": 2.5}, [(REMOVE, "$.a", None)], {"b": 2.5}),
        ([[1.5], [2.5]], [(REMOVE, "$[0][0]", None), (REMOVE, "$[1]", None)], [[]]),
        ({'a "b\n.[0]': None}, [(REPLACE, '$."a \\"b\\n.[0]"', True)], {'a "b\n.[0]': True}),
        ({"": None}, [(REPLACE, '$.""', True)], {"": True}),
        ({"é": None, "$x_1": None}, [(REPLACE, "$.é", True), (REMOVE, "$.$x_1", None)], {"é": True}),
        ({"aaa": 1.5}, [(INSERT, "$.b", 2.5)], {"b": 2.5, "aaa": 1.5}),
    ],
)  # fmt: skip
def test_diffs_do_what_the_server_does(before: Any, diffs: list[tuple[int, str, Any]], after: Any) -> None:
    assert changed(before, *(diff(*one) for one in diffs)) == canonical(document(after))


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (REPLACE, "$.b"), (REPLACE, "$[0]"), (INSERT, "$.a"), (REMOVE, "$.b"), (REMOVE, "$.a[0]"), (INSERT, "$.a.b"),
        (INSERT, "$.a[0]"), (REPLACE, "$"), (REMOVE, "$"), (REPLACE, "$.a.b.c"), (REPLACE, "$.l[2]"), (3, "$.a"),
        (REPLACE, "$**.a"), (REPLACE, '$."a'), (INSERT, "$[0]"), (INSERT, "$.l.x"),
    ],
)  # fmt: skip
def test_a_diff_that_does_not_fit_is_damage(operation: int, path: str) -> None:
    with pytest.raises(BinlogFormatError):
        changed({"a": 1.5, "l": [1.5, 2.5]}, diff(operation, path, "x"))


def test_an_empty_document_is_the_literal_null() -> None:
    assert canonical(b"") == canonical(document(None))


@settings(deadline=None, max_examples=300)
@given(DOCUMENTS, st.data())
def test_damaged_documents_are_found_or_read(value: Any, data: st.DataObject) -> None:
    raw = bytearray(document(value))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (bytes(raw), bytes(raw[:at])):
        try:
            read_tree(damaged)
        except BinlogFormatError as error:
            assert "damaged" in error.what


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_as_diffs_are_refused_or_applied(raw: bytes) -> None:
    tree = read_tree(document({"a": [1.5, {"b": None}], "c": "x"}))
    try:
        apply_diffs(tree, raw)
    except BinlogFormatError as error:
        assert json.dumps(error.what)
