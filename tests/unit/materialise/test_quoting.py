"""Names and texts in SQL."""

from __future__ import annotations

import pytest

from loader.errors import UnsupportedError
from loader.materialise.quoting import check_name, identifier, identifiers, literal
from loader.model.table import TableName


def test_a_backtick_is_doubled() -> None:
    assert identifier("a`b") == "`a``b`"
    assert identifiers(("a", "b c")) == "`a`, `b c`"


def test_a_literal_cannot_be_left() -> None:
    assert literal("it's \\ \n\r\0") == "'it\\'s \\\\ \\n\\r\\u0000'"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a.b", "a\\b", "a:b", "a%2fb", "a\nb", " a", "a*"])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    for table in (TableName("shop", name), TableName(name, "orders")):
        with pytest.raises(UnsupportedError, match="cannot hold a table"):
            check_name(table)


@pytest.mark.parametrize("name", ["orders", "Ordérs 2", "o$x", "a-b", "a`b", "it's", "日本"])
def test_a_name_that_is_a_folder_is_fine(name: str) -> None:
    check_name(TableName(name, name))
