"""Tables whose columns cannot change because of what somebody set in the warehouse: a partition field, a property."""

from __future__ import annotations

import pytest

from loader.model.table import Column
from loader.pipeline.upkeep.quarantine_release import release
from tests.integration.materialise.faults.test_quarantine import insert, settings
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
BEFORE, AFTER = table("orders", [ID, NAME], ["id"]), table("orders", [ID], ["id"])
P0 = position(1, 1000)


def test_the_table_stops_until_the_partition_field_is_dropped(lake: Lake) -> None:
    lake.staging.interval(position(1, 4), P0)
    lake.one(lake.loaded(lake.staging.load(BEFORE, [(1, "one")], P0)))
    name = lake.warehouse.name(BEFORE.name)
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, name) AS shard")
    lake.staging.interval(
        P0,
        position(1, 2000),
        [(BEFORE, [insert(1100)]), (AFTER, [Change("I", number(1, 1300), 5, (2,))])],
        [barrier(1200, "ALTER TABLE orders DROP name", "orders")],
    )
    (stopped,) = lake.merged().tables
    assert stopped.error
    assert (stopped.status, stopped.error["retryable"]) == ("quarantined", False)
    assert stopped.error["what"] == "the source dropped a column by which the warehouse's table is partitioned"
    cure = str(stopped.error["hint"]).partition("in Spark SQL: ")[2].partition(";")[0]
    lake.sql(cure)
    release(settings(lake))
    assert lake.one(lake.merged()).status == "applied"
    assert set(lake.rows(AFTER)) == {(1,), (1100,), (2,)}
    assert lake.metadata(AFTER).column_names == {"id", "_seqno", "_committed_at"}


def test_the_table_stops_until_it_no_longer_accepts_any_schema(lake: Lake) -> None:
    lake.staging.interval(position(1, 4), P0)
    lake.one(lake.loaded(lake.staging.load(AFTER, [(1,)], P0)))
    name = lake.warehouse.name(AFTER.name)
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    lake.staging.interval(
        P0,
        position(1, 2000),
        [(AFTER, [Change("I", number(1, 1100), 5, (2,))]), (BEFORE, [insert(1300)])],
        [barrier(1200, "ALTER TABLE orders ADD name VARCHAR(9)", "orders")],
    )
    (stopped,) = lake.merged().tables
    assert stopped.error
    assert stopped.status == "quarantined"
    assert stopped.error["what"] == "the columns of the table cannot change, because it accepts any schema"
    lake.sql(str(stopped.error["hint"]).partition("in Spark SQL: ")[2].partition(";")[0])
    release(settings(lake))
    assert lake.one(lake.merged()).status == "applied"
    assert lake.rows(BEFORE) == {(1,): (1, None), (2,): (2, None), (1300,): (1300, "new")}
