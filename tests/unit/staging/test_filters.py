"""Which tables are captured: inclusions, then exclusions, never the server's own."""

from __future__ import annotations

import pytest

from loader.model.table import TableName
from loader.staging.documents import TableFilter
from loader.staging.filters import CapturedTables, matches_schema


@pytest.mark.parametrize(
    ("include", "exclude", "name", "captured"),
    [
        (["shop.*"], [], ("shop", "orders"), True),
        (["shop.*"], [], ("Shop", "orders"), False),
        (["shop.*"], [], ("shop", "a.b"), True),
        (["shop.*"], [], ("shopping", "a"), False),
        (["shop.order*"], [], ("shop", "orders"), True),
        (["shop.order*"], [], ("shop", "items"), False),
        (["shop.orders", "crm.*"], [], ("crm", "x"), True),
        (["*.*"], ["shop.tmp_*"], ("shop", "tmp_1"), False),
        (["*.*"], ["shop.tmp_*"], ("shop", "tmp"), True),
        (["shop.t[0-9]"], [], ("shop", "t5"), True),
        (["shop.t?"], [], ("shop", "t"), False),
        (["*.*"], [], ("mysql", "user"), False),
        (["mysql.*"], [], ("mysql", "user"), False),
        (["*.*"], [], ("sys", "x"), False),
        (["*.*"], [], ("performance_schema", "x"), False),
        (["*.*"], [], ("information_schema", "x"), False),
        ([], [], ("shop", "orders"), False),
        (["shop.*"], ["shop.a[b]"], ("shop", "a[b]"), False),
        (["shop.what?*"], [], ("shop", "what?*"), True),
        (["shop.*"], ["shop.orders.bak"], ("shop", "orders.bak"), False),
        (["`a.b`.c"], [], ("a.b", "c"), True),
        (["`a.b`.c"], [], ("a", "b.c"), False),
    ],
)
def test_patterns_over_schema_and_table(
    include: list[str], exclude: list[str], name: tuple[str, str], captured: bool
) -> None:
    assert CapturedTables(TableFilter(include=tuple(include), exclude=tuple(exclude)))(TableName(*name)) is captured


@pytest.mark.parametrize(
    ("pattern", "schema", "may"),
    [
        ("shop.*", "shop", True),
        ("shop.orders", "shop", True),
        ("shop.orders", "sho", False),
        ("shop.orders", "shopping", False),
        ("*", "shop", True),
        ("*_archive", "shop", True),
        ("sh*rs", "shop", True),
        ("[s]hop.x", "shop", True),
        ("crm*", "shop", False),
        ("`a.b`.c", "a.b", True),
        ("`a.b`.c", "a", False),
        ("sh[o]p.orders", "sh[o]p", True),
        ("sh[o]p.orders", "sh[o]", False),
    ],
)
def test_patterns_that_may_match_a_table_of_a_schema(pattern: str, schema: str, may: bool) -> None:
    assert matches_schema(schema, (pattern,)) is may
