"""Bounds as conditions."""

from __future__ import annotations

import pytest

from loader.errors import StagedDataError
from loader.initial_load.chunks import chunk_query, select_expression
from loader.initial_load.documents import Bound, KeyColumn, LoadPlan
from loader.initial_load.keys import bound_expression, literal, middle_condition, range_condition, range_parts
from loader.model.identity import Identity
from loader.model.table import Column, TableName, TableSchema

NAME = Column("a`b", "varchar", charset="latin1")
COLUMNS = (
    Column("i", "int"),
    NAME,
    Column("e", "enum", charset="utf8mb4", labels=("x", "y", "z")),
    Column("d", "datetime", size=3),
    Column("x", "binary", size=3),
    Column("s", "set", charset="utf8mb4", labels=tuple(f"s{n}" for n in range(60))),
)


def plan(*names: str, bounds: tuple[Bound, ...] = (), falling: str = "") -> LoadPlan:
    schema = TableSchema(TableName("sh`op", "t"), COLUMNS, names)
    return LoadPlan(
        source="s",
        generation="0001",
        identity=Identity(kind="mysql", version="9", server_id=1),
        position="binlog.000002:157",
        shift=3,
        taken_at="2026-11-21 09:30:00.000000",
        table_schema=schema.as_dict(),
        index="PRIMARY",
        key=tuple(KeyColumn(name=name, descending=name == falling) for name in names),
        bounds=bounds,
        select=tuple(map(select_expression, COLUMNS)),
    )


def test_one_column() -> None:
    assert range_condition(plan("i"), None, None) == "TRUE"
    assert range_condition(plan("i"), ("-5",), None) == "(`i` > -5)"
    assert range_condition(plan("i"), None, ("7",)) == "(`i` <= 7)"
    assert range_condition(plan("i"), ("-5",), ("7",)) == "(`i` > -5) AND (`i` <= 7)"


def test_more_columns() -> None:
    two = plan("i", "a`b")
    assert range_condition(two, ("1", "41"), None) == "(`i` > 1 OR (`i` = 1 AND (`a``b` > _latin1 X'41')))"
    assert range_condition(two, None, ("1", "")) == "(`i` < 1 OR (`i` = 1 AND (`a``b` <= _latin1 X'')))"
    three = range_condition(plan("i", "d", "x"), ("1", "2024-01-01 00:00:00.000", "00FF00"), None)
    assert three == (
        "(`i` > 1 OR (`i` = 1 AND (`d` > '2024-01-01 00:00:00.000'"
        " OR (`d` = '2024-01-01 00:00:00.000' AND (`x` > X'00FF00')))))"
    )


def test_columns_with_one_value_in_the_whole_range() -> None:
    two = plan("i", "a`b")
    assert range_condition(two, ("1", "41"), ("1", "42")) == (
        "(`i` = 1) AND (`a``b` > _latin1 X'41') AND (`a``b` <= _latin1 X'42')"
    )
    three = plan("i", "e", "d", falling="e")
    day = "2024-01-01"
    assert range_condition(three, ("1", "2", day), ("1", "1", day)) == (
        f"(`i` = 1) AND (`e` IN (0, 1) OR (`e` = 2 AND (`d` > '{day}')))"
        f" AND (`e` IN (2, 3) OR (`e` = 1 AND (`d` <= '{day}')))"
    )
    assert range_condition(three, ("1", "2", day), ("1", "2", day)) == (
        f"(`i` = 1) AND (`e` = 2) AND (`d` > '{day}') AND (`d` <= '{day}')"
    )


def test_falling_columns() -> None:
    mixed = plan("i", "d", falling="i")
    assert range_condition(mixed, ("1", "2024-01-01"), None) == ("(`i` < 1 OR (`i` = 1 AND (`d` > '2024-01-01')))")
    assert range_condition(plan("i", falling="i"), None, ("1",)) == "(`i` >= 1)"


def test_labels_are_listed_for_the_index() -> None:
    assert range_condition(plan("e"), ("1",), ("2",)) == "(`e` IN (2, 3)) AND (`e` IN (0, 1, 2))"
    assert range_condition(plan("e"), ("3",), None) == "(FALSE)"
    assert range_condition(plan("e", "i"), ("2", "9"), None) == "(`e` IN (3) OR (`e` = 2 AND (`i` > 9)))"


def test_numbers_that_no_double_holds() -> None:
    large = str(2**60 - 1)
    assert range_condition(plan("s", "i"), (large, "1"), None) == (
        f"(CAST(`s` AS UNSIGNED) > {large} OR (CAST(`s` AS UNSIGNED) = {large} AND (`i` > 1)))"
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "1 OR 1"), ("int", ""), ("int", "1e5"), ("decimal", "1."), ("varchar", "41'"), ("binary", "GG"),
        ("datetime", "2024' OR '"), ("time", ""), ("double", "1e"), ("float", "inf"), ("enum", "x"), ("year", "'2024'"), ("int", "1\n"),
    ],
)  # fmt: skip
def test_a_damaged_bound_never_becomes_sql(kind: str, text: str) -> None:
    with pytest.raises(StagedDataError):
        literal(Column("c", kind), text)


def test_what_is_fetched() -> None:
    assert [bound_expression(column) for column in COLUMNS[:5]] == [
        "CAST(`i` AS CHAR)", "HEX(`a``b`)", "CAST(CAST(`e` AS UNSIGNED) AS CHAR)", "CAST(`d` AS CHAR)", "HEX(`x`)",
    ]  # fmt: skip


def test_the_statement_of_a_chunk() -> None:
    assert chunk_query(plan("i"), "`i` > 5").splitlines() == [
        "SELECT `i`, `a``b`, `e`, `d`, `x`, `s`",
        "FROM `sh``op`.`t` FORCE INDEX (`PRIMARY`)",
        "WHERE `i` > 5",
    ]


DAYS = ("2024-01-01", "2024-01-02")


@pytest.mark.parametrize(
    ("key", "lower", "upper", "parts"),
    [
        ("i", None, None, ["TRUE"]),
        ("i", ("5",), None, ["`i` > 5"]),
        ("i", None, ("5",), ["`i` <= 5"]),
        ("i", ("5",), ("9",), ["(`i` > 5) AND (`i` <= 9)"]),
        ("id", ("5", DAYS[0]), None, ["`i` = 5 AND `d` < '2024-01-01'", "`i` > 5"]),
        ("id", None, ("5", DAYS[0]), ["`i` < 5", "`i` = 5 AND `d` >= '2024-01-01'"]),
        (
            "id",
            ("5", DAYS[0]),
            ("9", DAYS[1]),
            ["`i` = 5 AND `d` < '2024-01-01'", "`i` > 5 AND `i` < 9", "`i` = 9 AND `d` >= '2024-01-02'"],
        ),
        ("id", ("5", DAYS[1]), ("5", DAYS[0]), ["(`i` = 5) AND (`d` < '2024-01-02') AND (`d` >= '2024-01-01')"]),
        (
            "xid",
            ("00", "5", DAYS[1]),
            ("00", "6", DAYS[0]),
            [
                "`x` = X'00' AND `i` = 5 AND `d` < '2024-01-02'",
                "`x` = X'00' AND `i` > 5 AND `i` < 6",
                "`x` = X'00' AND `i` = 6 AND `d` >= '2024-01-01'",
            ],
        ),
        (
            "xid",
            ("00", "5", DAYS[1]),
            ("01", "6", DAYS[0]),
            [
                "`x` = X'00' AND `i` = 5 AND `d` < '2024-01-02'",
                "`x` = X'00' AND `i` > 5",
                "`x` > X'00' AND `x` < X'01'",
                "`x` = X'01' AND `i` < 6",
                "`x` = X'01' AND `i` = 6 AND `d` >= '2024-01-01'",
            ],
        ),
    ],
)
def test_a_range_in_parts(key: str, lower: Bound | None, upper: Bound | None, parts: list[str]) -> None:
    """Column `d` is descending in all these keys."""
    made = plan(*key, falling="d")
    assert list(range_parts(made, lower, upper)) == parts
    middle = middle_condition(made, lower, upper)
    assert middle == (parts[len(parts) // 2] if lower and upper and len(parts) > 1 else None)


@pytest.mark.parametrize(
    "select", [("`i`",), ("`i`", "`a``b`", "`e`", "`d`", "`x`", "(SELECT authentication_string FROM mysql.user)")]
)
def test_a_plan_in_the_store_reads_nothing_but_its_columns(select: tuple[str, ...]) -> None:
    with pytest.raises(StagedDataError, match="selects other expressions"):
        chunk_query(plan("i").model_copy(update={"select": select}), "TRUE")


@pytest.mark.parametrize(
    ("text", "written"), [("0.1", "0.1e0"), ("-0.0", "-0.0e0"), ("1e-07", "1e-07"), ("1.5e+300", "1.5e+300")]
)
def test_floating_point_numbers_are_not_decimal_ones(text: str, written: str) -> None:
    assert literal(Column("c", "double"), text) == written


def test_a_plan_names_its_place() -> None:
    made = plan("i")
    assert made.seqno == 5_000_000_000_157
    assert made.folder == "s/0001/load/sh!60op/t/00000005000000000157"
    assert LoadPlan.read(made.canonical(), "plan.json").canonical() == made.canonical()
    assert (made.chunks, made.chunk(0)) == (1, (None, None))
