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
    assert catalog_name(name) == there
    assert table_identifier("lake", TableName(name, name)) == f"`lake`.`{there}`.`{there}`"


@pytest.mark.parametrize("name", ["orders", "Ordérs 2", "o$x", "a-b", "a`b", "it's", "日本"])
def test_a_name_that_is_a_folder_stays(name: str) -> None:
    assert catalog_name(name) == name


@given(st.text(alphabet="!.2eE aé\n", max_size=8))
def test_a_mapped_name_tells_the_name(name: str) -> None:
    found = catalog_name(name)
    assert re.sub(r"(?:![0-9a-f]{2})+", lambda m: bytes.fromhex(m[0].replace("!", "")).decode(), found) == name
    assert catalog_name(found) == found or "!" in found
