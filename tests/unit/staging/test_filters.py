"""Which tables are captured: inclusions, then exclusions, never the server's own."""

from __future__ import annotations

import pytest

from loader.model.table import TableName
from loader.staging.documents import TableFilter
from loader.staging.filters import Captured


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
    ],
)
def test_patterns_over_schema_and_table(
    include: list[str], exclude: list[str], name: tuple[str, str], captured: bool
) -> None:
    assert Captured(TableFilter(include=tuple(include), exclude=tuple(exclude)))(TableName(*name)) is captured
