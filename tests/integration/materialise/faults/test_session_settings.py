"""Settings of Spark applications, as in `[spark.conf]` or `spark-defaults.conf`, that change what statements mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table
from tests.integration.materialise.test_table_replay import replayed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
ORDERS = table("orders", [ID, NAME], ["id"])
P0, P1, P2 = position(1, 1000), position(1, 2000), position(1, 3000)


@pytest.fixture
def configured(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Lake]]:
    """A function from settings of the application to a lake."""
    conf = cast("Any", spark)._jsparkSession.sharedState().conf()
    names: list[str] = []

    def made(settings: dict[str, str]) -> Lake:
        for name, value in settings.items():
            conf.set(name, value)
            names.append(name)
        return Lake(spark, tmp_path)

    yield made
    for name in names:
        conf.remove(name)


@pytest.mark.parametrize("name", ["spark.wap.branch", "spark.wap.id"])
def test_settings_of_another_place_for_writes(configured: Callable[[dict[str, str]], Lake], name: str) -> None:
    lake = configured({name: "audit"})
    lake.loaded(lake.staging.load(ORDERS, [(1, "one")], P0))
    target = lake.warehouse.name(ORDERS.name)
    lake.sql(f"ALTER TABLE {target} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    lake.staging.interval(P0, P1, [(ORDERS, [Change("U", number(1, 1100), 5, (1, "uno"))])])
    assert lake.one(lake.merged()).status == "applied"
    assert lake.rows(ORDERS) == {(1,): (1, "uno")}
    lake.sql(f"ALTER TABLE {target} CREATE BRANCH audit")
    lake.staging.interval(P1, P2, [(ORDERS, [Change("U", number(1, 2100), 5, (1, "dos"))])])
    assert lake.one(lake.merged()).status == "applied"
    (found,) = replayed(lake, number(1, 1000)).tables
    assert (found.status, found.error) == ("same", None)


def test_the_type_of_timestamps(configured: Callable[[dict[str, str]], Lake]) -> None:
    lake = configured({"spark.sql.timestampType": "TIMESTAMP_NTZ"})
    times = table("times", [ID, Column("at", "timestamp"), Column("day", "datetime")], ["at"])
    lake.loaded(lake.staging.load(times, [(1, "2024-01-01 00:00:00", "2024-01-01 00:00:00")], P0))
    change = Change("U", number(1, 1100), 5, (2, "2024-01-01 00:00:00", "2024-01-02 00:00:00"))
    lake.staging.interval(P0, P1, [(times, [change])])
    assert lake.one(lake.merged()).status == "applied"
    kinds = {column["name"]: column["type"] for column in lake.metadata(times).schema["fields"]}
    assert (kinds["at"], kinds["day"], kinds["_committed_at"]) == ("timestamptz", "timestamp", "timestamptz")
    assert [row.id for row in lake.sql(f"SELECT id FROM {lake.warehouse.name(times.name)}")] == [2]
