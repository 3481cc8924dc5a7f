"""Virtual columns that depend on the session, from the expressions that the server shows."""

from __future__ import annotations

import pytest

from loader.model.table import Column, TableName, TableSchema
from loader.source.virtual_columns import VirtualColumn, mode_columns, offset_texts

SCHEMA = TableSchema(
    TableName("shop", "orders"),
    tuple(
        Column(name, kind)
        for name, kind in {
            "id": "int", "C": "char", "doc": "json", "at": "datetime", "label": "varchar", "w": "text",
            "v": "datetime", "n": "int",
        }.items()
    ),
    ("id",),
)  # fmt: skip


@pytest.mark.parametrize(
    ("virtual", "expected"),
    [
        ({"v": ("datetime", "json_unquote(json_extract(`doc`,_utf8mb4\\'$.at\\'))")}, ("doc",)),
        ({"w": ("text", "json_extract(`DOC`,'$')"), "v": ("datetime", "`w`")}, ("doc",)),
        ({"n": ("int", "year((`Label` + interval 1 day))")}, ("label",)),
        ({"n": ("int", "char_length(`label`)")}, ()),
        ({"w": ("text", "cast(`at` as datetime)")}, ()),
    ],
)
def test_texts_that_may_become_times(virtual: dict[str, tuple[str, str]], expected: tuple[str, ...]) -> None:
    assert offset_texts(SCHEMA, columns(virtual)) == expected


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ("PAD_CHAR_TO_FULL_LENGTH", {"w", "n"}),
        ("TIME_TRUNCATE_FRACTIONAL", {"v"}),
        ("TIME_ROUND_FRACTIONAL,STRICT_ALL_TABLES", {"v"}),
        ("STRICT_TRANS_TABLES,NO_ZERO_DATE", set()),
        ("", set()),
    ],
)
def test_columns_that_depend_on_sql_modes(modes: str, expected: set[str]) -> None:
    virtual = {"v": ("datetime", "`at`"), "w": ("text", "concat(`c`,'x')"), "n": ("int", "length(`W`)")}
    assert mode_columns(SCHEMA, columns(virtual), frozenset(modes.split(","))) == expected


def columns(virtual: dict[str, tuple[str, str]]) -> dict[str, VirtualColumn]:
    return {name: VirtualColumn(*one) for name, one in virtual.items()}
