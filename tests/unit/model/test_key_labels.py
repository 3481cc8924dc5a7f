"""Keys whose ENUM or SET has two values with one text."""

from __future__ import annotations

import pytest

from loader.errors import UnsupportedError
from loader.model.key_labels import check_key_labels
from loader.model.table import Column, TableName, TableSchema

NAME = TableName("shop", "t")


@pytest.mark.parametrize("kind", ["enum", "set"])
@pytest.mark.parametrize(("labels", "refused"), [(("a", ""), True), (("a", "b", "a"), True), (("a", "b"), False)])
def test_labels_of_a_key(kind: str, labels: tuple[str, ...], refused: bool) -> None:
    columns = (Column("k", kind, labels=labels), Column("n", "int"))
    check_key_labels(TableSchema(NAME, columns, ("n",)))
    if not refused:
        check_key_labels(TableSchema(NAME, columns, ("k",)))
        return
    with pytest.raises(UnsupportedError, match="the same text"):
        check_key_labels(TableSchema(NAME, columns, ("k",)))
