"""Tables that an operator rolls back to a commit inside a merge, for example by `rollback_to_timestamp`.

A merge makes several commits, and only the last one records the applied position. After a rollback to an earlier one, the
next run repeats the merge.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from loader.materialise.iceberg.table_metadata import APPLIED, RUN
from loader.materialise.rules import TableRule
from loader.materialise.spec import TableResult
from loader.model.table import Column, TableSchema
from loader.pipeline.upkeep.quarantine_release import release
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table
from tests.unit.pipeline.site import settings_of

pytestmark = pytest.mark.integration

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
P0, P1 = position(1, 1000), position(1, 2000)
REFUSED = "the table was rolled back to a snapshot inside a merge"


def roll_back(lake: Lake, schema: TableSchema) -> None:
    """Roll a table back to the first commit of its newest merge."""
    metadata = lake.metadata(schema)
    merge = [one for one in metadata.ancestry(metadata.head) if RUN in one.summary]
    run = merge[0].summary[RUN]
    first = [one for one in merge if one.summary[RUN] == run][-1]
    assert APPLIED not in first.summary
    lake.sql(f"CALL lake.system.rollback_to_snapshot('{schema.name}', {first.id})")


def refused(lake: Lake) -> TableResult:
    (found,) = lake.merged().tables
    assert found.error
    assert found.error["what"] == REFUSED
    return found


def follow_hint(lake: Lake, schema: TableSchema, found: TableResult) -> None:
    """Do what the error says."""
    assert found.error
    statement, _, command = found.error["hint"].removeprefix("in Spark SQL: ").partition("; then, ")
    assert f"loader release {schema.name}" in command
    lake.sql(statement)
    release(settings_of(lake.folder, lake.staging.store.root), str(schema.name))


def test_a_table_without_a_key(lake: Lake) -> None:
    bags = table("bags", [NAME], [])
    lake.loaded(lake.staging.load(bags, [("a",)] * 3, P0))
    changes = [Change("D", number(1, 1100), 5, ("a",)), Change("I", number(1, 1100), 9, ("b",))]
    lake.staging.interval(P0, P1, [(bags, changes)])
    assert lake.merged().exit_code == 0
    wanted = Counter({("a",): 2, ("b",): 1})
    roll_back(lake, bags)
    found = refused(lake)
    assert lake.bag(bags.name, "name") == Counter({("a",): 2})
    follow_hint(lake, bags, found)
    assert lake.one(lake.merged()).status == "applied"
    assert lake.bag(bags.name, "name") == wanted


def test_changes_that_undo_those_that_are_in_the_table(lake: Lake) -> None:
    bags = table("bags", [NAME], [])
    lake.loaded(lake.staging.load(bags, [("a",)], P0))
    changes = [Change("D", number(1, 1100), 5, ("a",)), Change("I", number(1, 1100), 9, ("b",))]
    lake.staging.interval(P0, P1, [(bags, changes)])
    assert lake.merged().exit_code == 0
    roll_back(lake, bags)
    changes = [Change("D", number(1, 2100), 5, ("b",)), Change("I", number(1, 2100), 9, ("a",))]
    lake.staging.interval(P1, position(1, 3000), [(bags, changes)])
    follow_hint(lake, bags, refused(lake))
    assert lake.merged().exit_code == 0
    assert lake.bag(bags.name, "name") == Counter({("a",): 1})


@pytest.mark.sweep
def test_a_history_that_is_merged_in_two_parts(lake: Lake) -> None:
    before = table("audit", [ID, Column("f", "float")], ["id"])
    after = table("audit", [ID, Column("f", "double")], ["id"])
    lake.rules = (TableRule(tables=("shop.audit",), mode="history"),)
    lake.loaded(lake.staging.load(before, [(1, "0.5")], P0))
    tables: list[Any] = [
        (before, [Change("U", number(1, 1100), 5, (1, "1.5"))]),
        (after, [Change("U", number(1, 1300), 5, (1, "2.5"))]),
    ]
    lake.staging.interval(P0, P1, tables, [barrier(1200, "ALTER TABLE audit MODIFY f DOUBLE", "audit")])
    assert lake.merged().exit_code == 0
    wanted = lake.bag(after.name, "id", "f", "_op")
    assert wanted == Counter({(1, 0.5, "I"): 1, (1, 1.5, "U"): 1, (1, 2.5, "U"): 1})
    roll_back(lake, after)
    follow_hint(lake, after, refused(lake))
    assert lake.merged().exit_code == 0
    assert lake.bag(after.name, "id", "f", "_op") == wanted


@pytest.mark.sweep
def test_row_images_that_leave_columns_out(lake: Lake) -> None:
    orders = table("orders", [ID, NAME, Column("n", "int")], ["id"])
    lake.loaded(lake.staging.load(orders, [(1, "one", 1), (2, "two", 2)], P0, exact=position(1, 1500)))
    lake.staging.interval(P0, P1, [(orders, [Change("U", number(1, 1100), 5, (1, None, 10), "02")])])
    assert lake.merged().exit_code == 0
    wanted = lake.rows(orders)
    roll_back(lake, orders)
    follow_hint(lake, orders, refused(lake))
    assert lake.merged().exit_code == 0
    assert lake.rows(orders) == wanted == {(1,): (1, "one", 10), (2,): (2, "two", 2)}


def test_rows_with_a_key_are_merged_again(lake: Lake) -> None:
    orders = table("orders", [ID, NAME], ["id"])
    lake.loaded(lake.staging.load(orders, [(1, "one"), (2, "two")], P0))
    lake.staging.interval(P0, P1, [(orders, [Change("U", number(1, 1100), 5, (1, "uno"))])])
    assert lake.merged().exit_code == 0
    wanted = lake.rows(orders)
    roll_back(lake, orders)
    assert lake.rows(orders) != wanted
    assert lake.one(lake.merged()).status == "applied"
    assert lake.rows(orders) == wanted
