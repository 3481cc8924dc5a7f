"""Spark applications whose configuration has `spark.sql.sources.partitionOverwriteMode = dynamic`.

INSERT OVERWRITE then replaces only the partitions that get rows. The loader means all rows of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from loader.materialise.iceberg.warehouse import Warehouse
from loader.model.table import TableName
from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

MODE = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture
def dynamic(live: LiveSource) -> Iterator[LiveSource]:
    """Sessions as they are with that setting in `[spark.conf]` or `spark-defaults.conf`."""
    conf = cast("Any", live.spark)._jsparkSession.sharedState().conf()
    conf.set(MODE, "dynamic")
    assert live.spark.newSession().conf.get(MODE) == "dynamic"
    yield live
    conf.remove(MODE)


def partition(live: LiveSource, *tables: str) -> None:
    warehouse = Warehouse(live.spark, live.settings.catalog)
    for table in tables:
        warehouse.session.sql(f"ALTER TABLE {warehouse.name(TableName(live.database, table))} ADD PARTITION FIELD b")


def test_a_load_replaces_all_rows_of_a_partitioned_table(dynamic: LiveSource) -> None:
    dynamic.run("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    dynamic.load()
    partition(dynamic, "t")
    dynamic.run("DELETE FROM t WHERE b = 2")
    dynamic.load_again("t")
    assert dynamic.warehouse_rows("t") == dynamic.server_rows("t")


def test_a_renamed_table_replaces_all_rows_of_a_partitioned_table(dynamic: LiveSource) -> None:
    dynamic.run("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "CREATE TABLE u LIKE t", "INSERT INTO t VALUES (1, 1)")
    dynamic.run("INSERT INTO u VALUES (2, 2)")
    dynamic.load()
    partition(dynamic, "t", "u")
    dynamic.run("RENAME TABLE t TO x, u TO t, x TO u")
    assert dynamic.statuses(dynamic.delta()) == {"t": "applied", "u": "applied"}
    assert dynamic.differences() == []


def test_a_table_is_emptied(dynamic: LiveSource) -> None:
    dynamic.run("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    dynamic.load()
    dynamic.run("TRUNCATE t")
    assert dynamic.statuses(dynamic.delta()) == {"t": "applied"}
    assert dynamic.differences() == []
