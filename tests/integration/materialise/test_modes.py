"""What the rule of a table makes of its rows: deleted ones kept, a history, and tables without a key."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from loader.materialise.rules import TableRule
from loader.materialise.spec import MaterialiseResult
from loader.model.table import Column, TableSchema
from loader.staging.documents import Barrier
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table

pytestmark = pytest.mark.integration

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
P0 = position(1, 1000)

KEPT = table("kept", [ID, NAME], ["id"])
AUDIT = table("audit", [ID, NAME], ["id"])
LOG = table("log", [NAME, ID], [])
NAMED = table("named", [ID, NAME], ["id"])
BAG = table("bag", [Column("f", "double"), NAME, Column("b", "varbinary"), Column("at", "datetime", size=6)], [])

RULES = (
    TableRule(tables=("shop.kept",), mode="soft_delete"),
    TableRule(tables=("shop.audit", "*.log"), mode="history"),
    TableRule(tables=("shop.named",), mode="soft_delete", seqno_column="", committed_at_column="", deleted_column="x"),
    TableRule(tables=("shop.*",), seqno_column="number", committed_at_column=""),
)


@pytest.fixture
def ruled(lake: Lake) -> Lake:
    lake.rules = RULES
    return lake


def statuses(result: MaterialiseResult) -> dict[str, str]:
    assert result.exit_code == 0, [one.error for one in result.tables if one.error]
    return {one.table.removeprefix("shop."): one.status for one in result.tables}


FIRST = [
    Change("U", number(1, 1100), 5, (1, "new")),
    Change("D", number(1, 1100), 9, (2, "two")),
    Change("D", number(1, 1200), 5, (3, "three")),
    Change("I", number(1, 1200), 9, (4, "three")),
]
SECOND = [Change("I", number(1, 2100), 5, (2, "back")), Change("D", number(1, 2100), 9, (4, "last"))]
ROWS = [(1, "one"), (2, "two"), (3, "three")]


def turned(values: list[Any]) -> list[Any]:
    return [value[::-1] for value in values]


def test_what_each_rule_makes_of_the_same_changes(ruled: Lake) -> None:
    """In two merges, each of them twice; the load is an insert of each row at its position."""
    first, second = ([(s, c) for s in (KEPT, AUDIT, NAMED)] for c in (FIRST, SECOND))
    flipped = [[Change(c.op, c.seqno, c.offset, c.values[::-1]) for c in part] for part in (FIRST, SECOND)]
    keys = [ruled.staging.load(schema, ROWS, P0) for schema in (KEPT, AUDIT, NAMED)]
    keys.append(ruled.staging.load(LOG, turned(ROWS), P0))
    assert set(statuses(ruled.loaded(*keys)).values()) == {"applied"}
    ruled.staging.interval(P0, position(1, 2000), [*first, (LOG, flipped[0])], parts=2)
    assert set(statuses(ruled.merged()).values()) == {"applied"}
    ruled.staging.interval(position(1, 2000), position(1, 3000), [*second, (LOG, flipped[1])])
    assert set(statuses(ruled.merged()).values()) == {"applied"}
    again = statuses(ruled.merged()), statuses(ruled.merged(number(1, 2000))), statuses(ruled.loaded(*keys))
    assert {status for each in again for status in each.values()} == {"already"}

    assert ruled.bag(KEPT.name, "id", "name", "_seqno", "_is_deleted") == Counter(
        [
            (1, "new", number(1, 1100), False),
            (2, "back", number(1, 2100), False),
            (3, "three", number(1, 1200), True),
            (4, "last", number(1, 2100), True),
        ]
    )
    assert ruled.bag(NAMED.name) == Counter(
        [(1, "new", False), (2, "back", False), (3, "three", True), (4, "last", True)]
    )
    loaded = [Change("I", number(1, 1000), 0, row) for row in ROWS]
    records = Counter((*c.values, c.op, c.seqno, c.offset) for c in loaded + FIRST + SECOND)
    assert ruled.bag(AUDIT.name, "id", "name", "_op", "_seqno", "_row_offset") == records
    assert ruled.bag(LOG.name, "id", "name", "_op", "_seqno", "_row_offset") == records
    assert None not in {at for (at,) in ruled.bag(AUDIT.name, "_committed_at")}


@pytest.mark.parametrize("cuts", [[9000], [1150, 1250, 1350, 1450, 9000]], ids=["at once", "interval by interval"])
def test_rows_that_come_and_go_by_a_truncate_are_in_tables_that_keep_them(ruled: Lake, cuts: list[int]) -> None:
    tables = (KEPT, AUDIT)
    ruled.loaded(*[ruled.staging.load(schema, ROWS, P0) for schema in tables])
    inserts = [(1100, (4, "before")), (1300, (5, "between")), (1500, (4, "after"))]
    for low, high in pairwise([1000, *cuts]):
        changes = [Change("I", number(1, at), 5, row) for at, row in inserts if low < at <= high]
        barriers = [emptied(schema, at) for at in (1200, 1400) for schema in tables if low < at <= high]
        ruled.staging.interval(
            position(1, low), position(1, high), [(schema, changes) for schema in tables if changes], barriers
        )
    for cut in cuts:
        statuses(ruled.merged(number(1, cut)))
    gone = {(1, "one", True), (2, "two", True), (3, "three", True), (5, "between", True)}
    assert set(ruled.bag(KEPT.name, "id", "name", "_is_deleted")) == {*gone, (4, "after", False)}
    staged = [*((*row, "I", number(1, 1000)) for row in ROWS), *((*row, "I", number(1, at)) for at, row in inserts)]
    assert ruled.bag(AUDIT.name, "id", "name", "_op", "_seqno") == Counter(staged)
    assert set(statuses(ruled.merged()).values()) == {"already"}


def emptied(schema: TableSchema, at: int) -> Barrier:
    return Barrier(
        seqno=number(1, at),
        position=position(1, at - 50),
        statement=f"TRUNCATE {schema.name.table}",
        database="shop",
        sql_mode=0,
        mariadb=False,
        tables=(str(schema.name),),
    )


def test_a_table_without_a_key_holds_each_row_as_often_as_the_source(ruled: Lake) -> None:
    """Equal rows, NULLs, -0.0 and 0.0, and texts that differ by a space or by case alone."""
    at = "2026-01-02 03:04:05.000001"
    rows = [
        ("0", "a", b"x", at),
        ("0", "a", b"x", at),
        ("-0", "a", b"x", at),
        (None, None, None, None),
        ("1.5", "a ", b"", at),
    ]
    key = ruled.staging.load(BAG, rows, P0)
    statuses(ruled.loaded(key))
    one = [
        Change("D", number(1, 1100), 5, rows[0]),
        Change("D", number(1, 1100), 7, rows[3]),
        Change("I", number(1, 1100), 8, ("1.5", "A ", b"", at)),
        Change("D", number(1, 1200), 5, ("1.5", "A ", b"", at)),
        Change("I", number(1, 1200), 8, ("1.5", "a ", b"", None)),
        *(Change("I", number(1, 1300), n, ("0", "new", None, at)) for n in range(3)),
    ]
    two = [
        Change("D", number(1, 2100), 1, ("0", "new", None, at)),
        Change("D", number(1, 2100), 2, ("-0", "a", b"x", at)),
        Change("I", number(1, 2100), 3, (None, None, None, None)),
        Change("I", number(1, 2100), 4, (None, None, None, None)),
    ]  # fmt: skip
    ruled.staging.interval(position(1, 900), position(1, 2000), [(BAG, one)], parts=3)
    (merged,) = ruled.merged().tables
    assert (merged.status, merged.rows_deleted, merged.rows_inserted) == ("applied", 2, 4), merged.error
    ruled.staging.interval(position(1, 2000), position(1, 3000), [(BAG, two)])
    (merged,) = ruled.merged().tables
    assert (merged.status, merged.rows_deleted, merged.rows_inserted) == ("applied", 2, 2), merged.error
    assert statuses(ruled.merged()) == {"bag": "already"}
    found = Counter({(str(f), name, b): n for (f, name, b), n in ruled.bag(BAG.name, "f", "name", "b").items()})
    assert found == Counter(
        {("0.0", "a", b"x"): 1, ("1.5", "a ", b""): 2, ("0.0", "new", None): 2, ("None", None, None): 2}
    )
    ruled.staging.interval(
        position(1, 3000), position(1, 4000), [(BAG, [*two[2:], Change("D", number(1, 3200), 1, rows[2])])]
    )
    head = ruled.metadata(BAG).head
    (failed,) = ruled.merged().tables
    assert failed.error is not None
    assert failed.error["what"] == "a row that was deleted on the server is not in the warehouse"
    assert '1 copies of this row are to be deleted, 0 exist: {"f":-0.0,"name":"a","b":' in failed.error["why"]
    assert failed.error["where"] == {"table": "shop.bag", "position": position(1, 3200)}
    assert ruled.metadata(BAG).head == head
    assert list(ruled.metadata(BAG).branches) == ["main"]


def test_a_table_made_by_another_rule_and_rules_that_do_not_fit(ruled: Lake) -> None:
    key = ruled.staging.load(KEPT, ROWS, P0)
    statuses(ruled.loaded(key))
    ruled.staging.interval(P0, position(1, 2000), [(KEPT, FIRST)])
    ruled.rules = (TableRule(tables=("*",), mode="history"),)
    for result in (ruled.merged(), ruled.loaded(key)):
        error = result.tables[0].error
        assert error is not None
        assert error["what"] == "the rule of the table was changed after the table was created"
        assert error["why"].startswith(
            "mode of the table is 'soft_delete', not 'history'; op_column of the table is '', not '_op'"
        )
        assert error["hint"].endswith("loader initial-load --table shop.kept --again")
    ruled.rules = RULES
    assert statuses(ruled.merged()) == {"kept": "applied"}
    bag = table("kept", LOG.columns, [], "other")
    ruled.rules = (TableRule(tables=("*",), mode="soft_delete"),)
    (failed,) = ruled.loaded(ruled.staging.load(bag, [], P0)).tables
    assert failed.error is not None
    assert "cannot have mode soft_delete" in failed.error["what"]


def test_columns_with_reserved_names_are_loaded_merged_and_altered(lake: Lake) -> None:
    lake.rules = (TableRule(tables=("*",), mode="soft_delete"),)
    taken = table(
        "kept", [Column("_Is_Deleted", "int"), Column("_file", "int"), Column("__file", "int")], ["_Is_Deleted"]
    )
    altered = replace(
        taken, columns=(*taken.columns[:1], Column("a", "int"), Column("__file", "int"), Column("_Pos", "int"))
    )
    assert statuses(lake.loaded(lake.staging.load(taken, [(1, 10, 100), (2, 20, 200)], P0))) == {"kept": "applied"}
    changes = [Change("U", number(1, 1100), 1, (1, 11, 101)), Change("D", number(1, 1100), 2, (2, 20, 200))]
    lake.staging.interval(P0, position(1, 2000), [(taken, changes)])
    assert statuses(lake.merged()) == {"kept": "applied"}
    assert lake.bag(taken.name, "__Is_Deleted", "__file", "___file", "_is_deleted") == Counter(
        [(1, 11, 101, False), (2, 20, 200, True)]
    )
    renamed = Barrier(
        seqno=number(1, 2100),
        position=position(1, 2050),
        statement="ALTER TABLE kept RENAME COLUMN _file TO a, ADD _Pos INT DEFAULT 7",
        database="shop",
        sql_mode=0,
        mariadb=False,
        tables=("shop.kept",),
    )
    later = [Change("I", number(1, 2200), 1, (2, 21, 201, 8))]
    lake.staging.interval(position(1, 2000), position(1, 3000), [(altered, later)], [renamed])
    assert statuses(lake.merged()) == {"kept": "applied"}
    assert lake.warehouse.session.table(lake.warehouse.name(taken.name)).columns == [
        "__Is_Deleted", "a", "___file", "__Pos", "_seqno", "_committed_at", "_is_deleted",
    ]  # fmt: skip
    assert lake.bag(taken.name, "__Is_Deleted", "a", "___file", "__Pos", "_is_deleted") == Counter(
        [(1, 11, 101, 7, False), (2, 21, 201, 8, False)]
    )


def test_a_column_that_an_earlier_version_named_differently_stops_its_table(lake: Lake) -> None:
    earlier = table("kept", [ID, Column("__file", "int"), Column("___file", "int")], ["id"])
    assert statuses(lake.loaded(lake.staging.load(earlier, [(1, 2, 3)], P0))) == {"kept": "applied"}
    name = lake.warehouse.name(earlier.name)
    for column in ("__file", "___file"):
        lake.sql(f"ALTER TABLE {name} RENAME COLUMN _{column} TO {column}")
    lake.staging.interval(P0, position(1, 2000), [(earlier, [Change("U", number(1, 1100), 1, (1, 4, 5))])])
    for column in ("___file", "__file"):
        (failed,) = lake.merged().tables
        assert failed.error is not None
        assert failed.error["what"] == (
            "a column of the warehouse's table has the name that an earlier version of the loader gave it"
        )
        command = f"ALTER TABLE {name} RENAME COLUMN `{column}` TO `_{column}`"
        assert failed.error["hint"] == f"in Spark SQL: {command}"
        lake.sql(command)
    assert statuses(lake.merged()) == {"kept": "applied"}
    assert lake.bag(earlier.name, "id", "___file", "____file") == Counter([(1, 4, 5)])


def test_a_load_into_a_history_keeps_the_values_of_columns_that_the_source_changed(lake: Lake) -> None:
    """The source has another type of `a`, and renamed `b`. The log of that was not applied."""
    before = table("orders", [Column("id", "int"), Column("a", "int"), Column("b", "int")], ["id"])
    lake.rules = (TableRule(tables=("shop.orders",), mode="history"),)
    lake.loaded(lake.staging.load(before, [(1, 10, 20)], position(1, 1000)))
    id_, a, b = before.columns
    changed = replace(a, type="varchar", charset="utf8mb4"), replace(b, name="c")
    after = replace(before, columns=(id_, *changed))
    for place, row in ((position(1, 2000), (2, "x", 21)), (position(1, 3000), (3, "y", 22))):
        lake.one(lake.loaded(lake.staging.load(after, [row], place)))
    assert lake.bag(before.name, "id", "a", "c", "a__dropped", "b") == Counter(
        {(1, None, None, 10, 20): 1, (2, "x", 21, None, None): 1, (3, "y", 22, None, None): 1}
    )
