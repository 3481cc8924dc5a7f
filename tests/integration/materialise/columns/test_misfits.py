"""Dates that are none: an error, NULL, or NULL beside their text, as the rule of the table says."""

from __future__ import annotations

import datetime
from collections import Counter

import pytest

from loader.materialise.rules import TableRule
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table

pytestmark = pytest.mark.integration

DAY, AT = Column("day", "date"), Column("at", "datetime", size=3)
NULLED = table("nulled", [Column("id", "int"), DAY, AT], ["id"])
TEXTED = table("texted", [DAY, Column("id", "int"), AT], ["id"])
BAG = table("bag", [DAY, AT], [])
KEYED = table("keyed", [DAY, AT], ["day"])
P0 = position(1, 1000)
RULES = (
    TableRule(tables=("*.nulled", "*.keyed"), on_misfit="null"),
    TableRule(tables=("*.texted",), on_misfit="text", mode="soft_delete"),
    TableRule(tables=("*.bag",), on_misfit="text"),
)
GOOD = datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)


def test_each_policy_in_a_load_and_in_a_merge(lake: Lake) -> None:
    lake.rules = RULES
    rows = [(1, "0000-00-00", "2024-01-02 03:04:05.678"), (2, "2024-01-02", "0000-00-00 00:00:00.000"), (3, None, None)]
    keys = [
        lake.staging.load(NULLED, rows, P0),
        lake.staging.load(TEXTED, [(day, key, at) for key, day, at in rows], P0),
        lake.staging.load(BAG, [row[1:] for row in rows], P0),
    ]
    loaded = lake.loaded(*keys)
    assert {one.table: one.misfits for one in loaded.tables} == {
        f"shop.{name}": {"day": 1, "at": 1} for name in ("nulled", "texted", "bag")
    }
    assert lake.bag(NULLED.name, "id", "day", "at") == Counter(
        [(1, None, GOOD[1]), (2, GOOD[0], None), (3, None, None)]
    )
    side = ("day", "at", "day__text", "at__text")
    texts = [(None, GOOD[1], "0000-00-00", None), (GOOD[0], None, None, "0000-00-00 00:00:00.000"), (None,) * 4]
    assert lake.bag(BAG.name, *side) == Counter(texts)

    first = [
        Change("U", number(1, 1100), 1, (1, "2024-01-02", "2024-02-30 00:00:00.000")),
        Change("D", number(1, 1100), 2, (2, "2024-01-02", "0000-00-00 00:00:00.000")),
        Change("U", number(1, 1200), 1, (3, "2024-00-01", None)),
        Change("I", number(1, 1200), 2, (4, "0000-00-00", None)),
        Change("U", number(1, 1300), 2, (4, "2024-01-02", None)),
    ]
    turned = [Change(c.op, c.seqno, c.offset, (c.values[1], c.values[0], c.values[2])) for c in first]
    bag = [
        Change("D", number(1, 1100), 1, rows[0][1:]),
        Change("I", number(1, 1100), 2, (None, "2024-01-02 03:04:05.678")),
        Change("D", number(1, 1100), 3, rows[1][1:]),
        Change("I", number(1, 1100), 4, rows[1][1:]),
    ]
    lake.staging.interval(P0, position(1, 2000), [(NULLED, first), (TEXTED, turned), (BAG, bag)])
    merged = {one.table.removeprefix("shop."): one for one in lake.merged().tables}
    assert [str(one.error) for one in merged.values() if one.error] == []
    # Of row 2 only the key is used in a mirror; of row 4 the last version alone.
    assert merged["nulled"].misfits == {"at": 1, "day": 1}
    assert merged["texted"].misfits == {"at": 2, "day": 1}
    assert merged["bag"].misfits == {}
    assert lake.bag(NULLED.name, "id", "day", "at") == Counter(
        [(1, GOOD[0], None), (3, None, None), (4, GOOD[0], None)]
    )
    assert lake.bag(TEXTED.name, "id", *side, "_is_deleted") == Counter(
        [
            (1, GOOD[0], None, None, "2024-02-30 00:00:00.000", False),
            (2, GOOD[0], None, None, "0000-00-00 00:00:00.000", True),
            (3, None, None, "2024-00-01", None, False),
            (4, GOOD[0], None, None, None, False),
        ]
    )
    assert lake.bag(BAG.name, *side) == Counter([(None, GOOD[1], None, None), *texts[1:]])


def test_a_date_that_is_none_in_a_key_and_a_name_that_is_taken(lake: Lake) -> None:
    lake.rules = RULES
    taken = table("texted", [Column("id", "int"), DAY, Column("Day__Text", "int")], ["id"], "other")
    keys = [lake.staging.load(KEYED, [("0000-00-00", None)], P0), lake.staging.load(taken, [], P0)]
    found = {one.table: one.error for one in lake.loaded(*keys).tables}
    assert "not fit the column's type date" in str(found["shop.keyed"])
    assert "the name that another column needs for its invalid dates" in str(found["other.texted"])


def test_a_name_of_a_column_may_hold_a_backtick(lake: Lake) -> None:
    lake.rules = RULES
    ticked = table("nulled", [Column("id", "int"), Column("da`y", "date")], ["id"])
    lake.loaded(lake.staging.load(ticked, [(1, "0000-00-00")], P0))
    changes = [Change("I", number(1, 1100), 1, (2, "0000-00-00")), Change("I", number(1, 1100), 2, (3, "2024-01-02"))]
    lake.staging.interval(P0, position(1, 2000), [(ticked, changes)])
    assert lake.one(lake.merged()).misfits == {"da`y": 1}
    assert lake.rows(ticked) == {(1,): (1, None), (2,): (2, None), (3,): (3, GOOD[0])}
