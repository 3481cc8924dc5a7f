"""Names and texts in SQL."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.materialise.quoting import catalog_name, identifier, identifiers, literal, table_identifier
from loader.model.table import TableName


def test_a_backtick_is_doubled() -> None:
    assert identifier("a`b") == "`a``b`"
    assert identifiers(("a", "b c")) == "`a`, `b c`"


def test_a_literal_cannot_be_left() -> None:
    assert literal("it's \\ \n\r\0") == "'it\\'s \\\\ \\n\\r\\u0000'"


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("orders.bak", "orders!2ebak"),
        ("..", "!2e!2e"),
        ("a/b\\c", "a!2fb!5cc"),
        (" a ", "!20a!20"),
        ("a\u3000", "a!e3!80!80"),
        ("a\nb", "a!0ab"),
        ("50%?", "50!25!3f"),
        ("a!2eb", "a!212eb"),
        ("wow!", "wow!"),
        ("!.", "!!2e"),
    ],
)
def test_a_name_that_is_no_folder_is_mapped(name: str, there: str) -> None:
    assert catalog_name(name, "jdbc") == there
    assert table_identifier("lake", "jdbc", TableName(name, name)) == f"`lake`.`{there}`.`{there}`"


@pytest.mark.parametrize("name", ["orders", "Ordérs 2", "o$x", "a-b", "a`b", "it's", "日本"])
def test_a_name_that_is_a_folder_stays(name: str) -> None:
    assert catalog_name(name, "jdbc") == name


@given(st.text(alphabet="!.2eE aé\n", max_size=8))
def test_a_mapped_name_tells_the_name(name: str) -> None:
    found = catalog_name(name, "jdbc")
    assert re.sub(r"(?:![0-9a-f]{2})+", lambda m: bytes.fromhex(m[0].replace("!", "")).decode(), found) == name
    assert catalog_name(found, "jdbc") == found or "!" in found


@pytest.mark.parametrize("kind", ["hive", "glue"])
@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("orders_2", "orders_2"),
        ("OrderItems", "orderitems"),
        ("orders.bak", "orders_x2ebak"),
        ("a-b c", "a_x2db_x20c"),
        ("ordérs", "ord_xc3_xa9rs"),
        ("É", "_xc3_x89"),
        ("a_x2eb", "a_x5fx2eb"),
        ("_xyz", "_xyz"),
    ],
)
def test_a_catalog_of_plain_names_has_letters_digits_and_underscores(kind: str, name: str, there: str) -> None:
    assert catalog_name(name, kind) == there
    assert table_identifier("lake", kind, TableName(name, name)) == f"`lake`.`{there}`.`{there}`"


@given(st.text(alphabet="_x2ef .é\u212a", max_size=8))
def test_a_plain_name_tells_the_name(name: str) -> None:
    found = catalog_name(name, "hive")
    assert re.fullmatch("[a-z0-9_]*", found)
    escapes = r"(?:_x[0-9a-f]{2})+"
    assert re.sub(escapes, lambda m: bytes.fromhex(m[0].replace("_x", "")).decode(), found) == name
