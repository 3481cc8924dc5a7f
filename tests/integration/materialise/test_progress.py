"""A table is never reported as done before its target: also where its records lie far from the statements about it."""

from __future__ import annotations

from typing import Any

import pytest

from loader.materialise.rules import TableRule
from loader.model.table import Column, TableName
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.renames.test_renames import barrier, change
from tests.integration.materialise.staged_writer import number, position, table

pytestmark = pytest.mark.integration

ID, N = Column("id", "int"), Column("n", "int")
A, B = table("a", [ID, N], ["id"]), table("b", [ID, N], ["id"])
P0, STOP = position(1, 1000), position(1, 3000)


def rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    return sorted(lake.bag(TableName("shop", name), "id", "n"))


def check_complete(lake: Lake) -> None:
    """One run brings every table to the stop, and the next one changes nothing."""
    result = lake.merged()
    assert {one.table: (one.status, one.error) for one in result.tables if one.status != "applied"} == {}
    assert {one.complete_through for one in result.tables} == {number(1, 3000)}
    assert result.published
    assert {one.status for one in lake.merged().tables} <= {"already", "unchanged"}


def test_a_swap_after_which_one_file_goes_on(lake: Lake) -> None:
    lake.loaded(lake.staging.load(A, [(1, 1), (2, 2)], P0), lake.staging.load(B, [(101, 1)], P0))
    swap = "RENAME TABLE a TO spare, b TO a, spare TO b"
    lake.staging.interval(
        P0,
        STOP,
        [
            (A, [change("U", 1100, 1, 5), change("I", 1500, 103, 3)]),
            (B, [change("U", 1200, 101, 6), change("U", 1600, 2, 7)]),
        ],
        [barrier(1400, swap, "a", "b", "spare")],
    )
    check_complete(lake)
    assert rows(lake, "a") == [(101, 6), (103, 3)]
    assert rows(lake, "b") == [(1, 5), (2, 7)]


def test_swaps_with_nothing_between_them(lake: Lake) -> None:
    lake.loaded(lake.staging.load(A, [(1, 1)], P0), lake.staging.load(B, [(2, 2)], P0))
    swap = "RENAME TABLE a TO spare, b TO a, spare TO b"
    lake.staging.interval(
        P0,
        STOP,
        [(A, [change("U", 1100, 1, 10), change("U", 2500, 2, 20)]), (B, [change("I", 2600, 3, 3)])],
        [barrier(offset, swap, "a", "b", "spare") for offset in (1400, 1500, 1600)],
    )
    check_complete(lake)
    assert rows(lake, "a") == [(2, 20)]
    assert rows(lake, "b") == [(1, 10), (3, 3)]


def test_statements_that_change_nothing_of_a_table_that_stops_before_each(lake: Lake) -> None:
    lake.rules = (TableRule(tables=("shop.*",), on_drop="keep"),)
    lake.loaded(lake.staging.load(A, [(1, 1)], P0))
    lake.staging.interval(
        P0,
        STOP,
        [(A, [change("U", 1100, 1, 2), change("I", 2500, 2, 2)])],
        [barrier(offset, f"ALTER TABLE a ADD INDEX i{offset} (n)", "a") for offset in (1400, 1500, 1600)],
    )
    check_complete(lake)
    assert rows(lake, "a") == [(1, 2), (2, 2)]


def test_a_table_that_was_dropped_before_it_was_loaded(lake: Lake) -> None:
    lake.rules = (TableRule(tables=("shop.b",), mode="history"),)
    lake.staging.interval(
        P0,
        STOP,
        [(A, [change("I", 1100, 1, 1)]), (B, [change("I", 1200, 1, 1)])],
        [barrier(1400, "DROP TABLE a, b", "a", "b")],
    )
    a, b = lake.merged().tables
    assert (a.status, a.complete_through) == ("unchanged", number(1, 3000))
    assert b.status == "quarantined" and b.error is not None
    assert b.error["hint"].startswith("add 'shop.b' to tables.exclude of the source, then: loader run")
    assert lake.warehouse.metadata(A.name) is None


def test_rows_that_an_initial_load_passed_over_are_not_taken_by_another_table(lake: Lake) -> None:
    lake.loaded(lake.staging.load(A, [(1, 1)], P0), lake.staging.load(B, [(101, 1)], P0))
    swap = "RENAME TABLE a TO spare, b TO a, spare TO b"
    lake.staging.interval(P0, STOP, [(A, [change("U", 1100, 1, 5)])], [barrier(1400, swap, "a", "b", "spare")])
    lake.loaded(lake.staging.load(A, [(101, 1)], STOP))
    found = {one.table: one for one in lake.merged().tables}
    assert rows(lake, "a") == [(101, 1)]
    error = found["shop.b"].error
    assert found["shop.b"].status == "quarantined" and error is not None
    assert error["hint"].startswith("loader initial-load --table shop.b --again")
    assert rows(lake, "b") == [(101, 1)]
