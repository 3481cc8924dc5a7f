"""Names in lower case, as servers store them."""

from __future__ import annotations

import pytest

from loader.model.name_folding import folded_name, folded_table
from loader.model.table import TableName


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Orders_1", "orders_1"), ("GRÖSSE", "grösse"), ("ΠΕΛΑΤΗΣ", "πελατησ"), ("πελάτης", "πελάτης"), ("İL", "il"),
        ("ẞ", "ẞ"), ("ЗАКАЗЫ", "заказы"), ("Ⴀ", "Ⴀ"), ("Ϣ", "ϣ"), ("ϴ", "ϴ"), ("Ⱥ", "Ⱥ"), ("Ａ", "ａ"), ("\u212a", "k"),
        ("注文", "注文"), ("Ԁ", "Ԁ"), ("Ӹ", "ӹ"), ("Ꙁ", "Ꙁ"), ("Ⅷ", "ⅷ"), ("Ⓐ", "ⓐ"),
    ],
)  # fmt: skip
def test_letters_are_folded_as_by_the_servers(name: str, folded: str) -> None:
    assert folded_name(name) == folded
    assert folded_table(TableName(name, name)) == TableName(folded, folded)
