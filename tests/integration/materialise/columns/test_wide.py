"""A table with as many columns as InnoDB allows is loaded, merged and replayed."""

from __future__ import annotations

import pytest

from loader.materialise.rules import TableRule
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table
from tests.integration.materialise.test_table_replay import replayed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]

COUNT = 1016  # besides the key
P0 = position(1, 1000)
KINDS = (
    Column("", "int"),
    Column("", "varchar", charset="utf8mb4"),
    Column("", "datetime", size=6),
    Column("", "double"),
    Column("", "date"),
)
VALUES = ("7", "text", "2026-01-02 03:04:05.000006", "1.5", "2026-01-02")
COLUMNS = [Column("id", "int")] + [
    Column(f"c{n}", kind.type, size=kind.size, charset=kind.charset)
    for n, kind in enumerate(KINDS[n % len(KINDS)] for n in range(COUNT))
]
WIDE = table("wide", COLUMNS, ["id"])
BAG = table("bag", COLUMNS, [])


def row(key: int, **changed: str) -> tuple[object, ...]:
    values = [changed.get(column.name, VALUES[n % len(KINDS)]) for n, column in enumerate(COLUMNS[1:])]
    return (key, *values)


@pytest.mark.parametrize("on_misfit", ["error", "text"])
def test_every_column_is_loaded_and_merged(lake: Lake, on_misfit: str) -> None:
    lake.rules = (TableRule(tables=("shop.*",), on_misfit=on_misfit),)
    result = lake.loaded(
        lake.staging.load(WIDE, [row(1), row(2), row(3)], P0), lake.staging.load(BAG, [row(1), row(1)], P0)
    )
    assert [one.error for one in result.tables] == [None, None]
    changes = [
        Change("U", number(1, 1100), 5, row(1, c200="12", c1="new")),
        Change("D", number(1, 1200), 5, row(2)),
        Change("I", number(1, 1300), 5, row(4, c245="99")),
    ]
    lake.staging.interval(P0, position(1, 2000), [(WIDE, changes), (BAG, [Change("D", number(1, 1400), 5, row(1))])])
    result = lake.merged()
    assert [one.error for one in result.tables] == [None, None]
    found = lake.rows(WIDE)
    assert sorted(found) == [(1,), (3,), (4,)]
    assert (found[(1,)][201], found[(1,)][2], found[(4,)][246]) == (12, "new", 99)
    assert lake.bag(BAG.name, "id", "c245").total() == 1
    if on_misfit == "error":
        name = lake.warehouse.name(WIDE.name)
        lake.sql(f"UPDATE {name} SET c240 = 0 WHERE id = 1")
        (fixed,) = replayed(lake, number(1, 1000), "shop.wide", publish=True).tables
        assert (fixed.error, fixed.status, fixed.updates) == (None, "published", 1)
        assert lake.rows(WIDE) == found
