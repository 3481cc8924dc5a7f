"""Tables whose file format an operator has changed in the warehouse."""

from __future__ import annotations

import pytest

from loader.materialise.jobs.maintain_job import maintain
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table
from tests.integration.materialise.test_maintenance import spec as maintenance

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

ID = Column("id", "int")
P0, P1 = position(1, 1000), position(1, 2000)
LAST_SECOND = "1969-12-31 23:59:59.500000"


def times(lake: Lake) -> dict[int, str]:
    rows = lake.sql("SELECT id, date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS') AS at FROM lake.shop.times")
    return {row.id: row.at for row in rows}


def set_format(lake: Lake, name: str) -> None:
    lake.sql(f"ALTER TABLE lake.shop.times SET TBLPROPERTIES ('write.format.default' = '{name}')")


def test_orc_changes_times_before_1970(lake: Lake) -> None:
    schema = table("times", [ID, Column("at", "datetime", size=6)], ["id"])
    lake.loaded(lake.staging.load(schema, [(1, LAST_SECOND)], P0))
    set_format(lake, "orc")
    lake.staging.interval(P0, P1, [(schema, [Change("I", number(1, 1100), 5, (2, LAST_SECOND))])])
    (found,) = lake.merged().tables
    assert (found.status, found.error and found.error["what"]) == (
        "quarantined", "the table's files are ORC, which changes times with fractions",
    )  # fmt: skip
    (maintained,) = maintain(lake.spark, maintenance(lake)).tables
    assert maintained.error
    assert found.error
    lake.sql(found.error["hint"].removeprefix("in Spark SQL: ").partition(";")[0])
    lake.one(lake.loaded(lake.staging.load(schema, [(1, LAST_SECOND), (2, LAST_SECOND)], P1)))
    assert times(lake) == {1: LAST_SECOND, 2: LAST_SECOND}


@pytest.mark.parametrize("name", ["orc", "avro"])
def test_other_times_and_formats(lake: Lake, name: str) -> None:
    kind = Column("at", "datetime", size=0 if name == "orc" else 6)
    text = LAST_SECOND.partition(".")[0] if name == "orc" else LAST_SECOND
    schema = table("times", [ID, kind], ["id"])
    lake.loaded(lake.staging.load(schema, [(1, text)], P0))
    set_format(lake, name)
    lake.staging.interval(P0, P1, [(schema, [Change("I", number(1, 1100), 5, (2, text))])])
    assert lake.one(lake.merged()).status == "applied"
    assert {at[: len(text)] for at in times(lake).values()} == {text}
