"""Names of source columns in the warehouse: never a reserved name, and never the same name for two columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import UnsupportedError
from loader.materialise.plan.column_names import ALIAS_PREFIX, column_name
from loader.materialise.plan.table_layout import Layout
from loader.materialise.rules import DEFAULT, RESERVED, TableRule
from loader.model.table import Column, TableName, TableSchema

NAME = TableName("shop", "orders")
STEMS = (
    "file",
    "pos",
    "deleted",
    "op",
    "seqno",
    "is_deleted",
    "row_offset",
    "gone",
    "loader_1_int__x",
    "loader",
    "a",
    "",
)


def recased(name: str, bits: int) -> str:
    return "".join(letter.upper() if bits >> place & 1 else letter for place, letter in enumerate(name))


column_names = st.builds(
    lambda depth, stem, bits: recased("_" * depth + stem, bits),
    st.integers(0, 5),
    st.sampled_from(STEMS) | st.text(max_size=6),
    st.integers(0, 63),
)
rules = st.builds(
    lambda mode, deleted, seqno, op: TableRule(mode=mode, deleted_column=deleted, seqno_column=seqno, op_column=op),
    st.sampled_from(["mirror", "soft_delete", "history"]),
    st.sampled_from(["_is_deleted", "gone", "__pos", "Deleted", "___gone", "loader_x", "file"]),
    st.sampled_from(["_seqno", "__gone", "____file", "_loader_seqno"]),
    st.sampled_from(["_op", "op", "__op"]),
)


def taken(rule: TableRule) -> set[str]:
    return RESERVED | {name.casefold() for name in rule.meta.values() if name}


@given(column_names, rules)
def test_no_column_gets_a_reserved_name(column: str, rule: TableRule) -> None:
    name = column_name(column, rule).casefold()
    assert name not in taken(rule)
    assert not name.startswith(ALIAS_PREFIX)


@given(column_names, column_names, rules)
def test_two_columns_never_get_the_same_name(one: str, other: str, rule: TableRule) -> None:
    same = column_name(one, rule).casefold() == column_name(other, rule).casefold()
    assert same == (one.casefold() == other.casefold())


@given(column_names, rules)
def test_a_name_only_gets_more_underscores_if_names_like_it_are_reserved(column: str, rule: TableRule) -> None:
    name = column_name(column, rule)
    assert name.endswith(column)
    assert not name.removesuffix(column).strip("_")
    stem = column.casefold().lstrip("_")
    if stem not in {name.lstrip("_") for name in taken(rule)} and not stem.startswith("loader_"):
        assert name == column


@pytest.mark.parametrize(
    ("column", "rule", "name"),
    [
        ("_file", DEFAULT, "__file"),
        ("_File", DEFAULT, "__File"),
        ("__file", DEFAULT, "___file"),
        ("file", DEFAULT, "file"),
        ("_files", DEFAULT, "_files"),
        ("_loader_x", DEFAULT, "__loader_x"),
        ("loader_x", DEFAULT, "loader_x"),
        ("_seqno", DEFAULT, "__seqno"),
        ("_seqno", TableRule(seqno_column="place"), "_seqno"),
        ("place", TableRule(seqno_column="place"), "_place"),
        ("_seqno", TableRule(seqno_column=""), "_seqno"),
        ("_is_deleted", DEFAULT, "_is_deleted"),
        ("_is_deleted", TableRule(mode="soft_delete"), "__is_deleted"),
        ("deleted", TableRule(mode="soft_delete", deleted_column="deleted"), "__deleted"),
        ("_deleted", TableRule(mode="soft_delete", deleted_column="deleted"), "___deleted"),
        ("_op", TableRule(mode="soft_delete"), "_op"),
        ("_op", TableRule(mode="history"), "__op"),
    ],
)
def test_names(column: str, rule: TableRule, name: str) -> None:
    assert column_name(column, rule) == name


def test_a_table_has_the_names_in_its_columns_key_and_texts() -> None:
    columns = (Column("_file", "int"), Column("__file", "date"), Column("_IS_DELETED", "datetime"))
    layout = Layout(TableSchema(NAME, columns, ("_file",)), TableRule(mode="soft_delete", on_misfit="text"))
    layout.check()
    assert [column.name for column in layout.columns] == [
        "__file", "___file", "__IS_DELETED", "___file__text", "__IS_DELETED__text", "_seqno", "_committed_at",
        "_is_deleted",
    ]  # fmt: skip
    assert layout.key == ("__file",)


def test_a_column_with_the_name_of_a_text_column_is_refused() -> None:
    columns = (Column("id", "int"), Column("_pos", "date"), Column("__POS__text", "int"))
    schema = TableSchema(NAME, columns, ("id",))
    Layout(schema, TableRule(on_misfit="null")).check()
    with pytest.raises(UnsupportedError, match="the name that another column needs for its invalid dates") as caught:
        Layout(schema, TableRule(on_misfit="text")).check()
    assert caught.value.where["column"] == "__POS__text"
