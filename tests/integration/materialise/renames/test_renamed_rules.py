"""A table takes the rows of a table whose rule was changed in the configuration after it was made."""

from __future__ import annotations

import pytest

from loader.materialise.rules import TableRule
from loader.model.table import Column
from loader.pipeline.upkeep.quarantine_release import release
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table
from tests.unit.pipeline.site import settings_of

pytestmark = pytest.mark.integration

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
OLD, NEW = table("old", [ID, NAME], ["id"]), table("new", [ID, NAME], ["id"])
P0, P1, P2 = position(1, 1000), position(1, 2000), position(1, 3000)
SOFT = TableRule(tables=("shop.*",), mode="soft_delete")


def test_deleted_rows_do_not_come_back(lake: Lake) -> None:
    lake.rules = (SOFT,)
    lake.loaded(lake.staging.load(OLD, [(1, "one"), (2, "two")], P0))
    lake.staging.interval(P0, P1, [(OLD, [Change("D", number(1, 1100), 5, (2, "two"))])])
    assert lake.merged().exit_code == 0
    rename = barrier(2100, "RENAME TABLE old TO new", "old", "new")
    lake.staging.interval(P1, P2, [], [rename])
    assert {one.table: one.status for one in lake.merged().tables} == {"shop.new": "quarantined", "shop.old": "applied"}
    lake.rules = ()
    lake.sql("DROP TABLE lake.shop.new")
    release(settings_of(lake.folder, lake.staging.store.root), "shop.new")
    found = {one.table: one for one in lake.merged().tables}["shop.new"]
    assert found.error
    assert found.error["what"] == "the rule of the table was changed after the table was created"
    assert lake.warehouse.metadata(NEW.name) is None
