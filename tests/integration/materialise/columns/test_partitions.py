"""A column that the source drops, and by which somebody partitioned the warehouse's table: Iceberg cannot drop it."""

from __future__ import annotations

import os

import pytest

from loader.model.table import Column
from loader.pipeline.upkeep.quarantine_release import release
from tests.integration.materialise.faults.test_quarantine import insert, settings
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, barrier, number, position, table

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif("LOADER_SWEEP" not in os.environ, reason="one of the long tests"),
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
