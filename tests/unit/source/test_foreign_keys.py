"""Parents of captured tables, from the foreign keys that cascade."""

from __future__ import annotations

import pytest

from loader.model.table import TableName
from loader.source.foreign_keys import cascade_parents


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([], {}),
        ([("s.child", "s.parent")], {"s.parent": ("s.child",)}),
        ([("x.child", "s.parent")], {}),
        ([("s.b", "x.a"), ("s.a", "x.a")], {"x.a": ("s.a", "s.b")}),
        ([("s.b", "x.a"), ("s.c", "s.b")], {"s.b": ("s.c",), "x.a": ("s.b", "s.c")}),
        ([("x.b", "x.a"), ("s.c", "x.b")], {"x.a": ("s.c",), "x.b": ("s.c",)}),
        ([("s.tree", "s.tree")], {"s.tree": ("s.tree",)}),
        (
            [("s.a", "s.b"), ("s.b", "s.a"), ("s.c", "s.a")],
            {"s.a": ("s.a", "s.b", "s.c"), "s.b": ("s.a", "s.b", "s.c")},
        ),
    ],
)
def test_a_change_reaches_captured_tables_through_others(
    keys: list[tuple[str, str]], expected: dict[str, tuple[str, ...]]
) -> None:
    found = cascade_parents(
        [(TableName.parse(child), TableName.parse(parent)) for child, parent in keys],
        lambda name: name.schema == "s",
    )
    assert found == expected
