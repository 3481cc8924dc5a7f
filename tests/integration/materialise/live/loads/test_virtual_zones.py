"""Virtual columns that are computed in the time zone of the session that reads or writes a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from infra.servers import Kind
from loader import pipeline
from loader.initial_load.run import stage_tables
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.materialise.live_source import live_source

pytestmark = pytest.mark.integration

COLUMNS = {
    "a TIMESTAMP NULL, d DATE AS (DATE(a)) VIRTUAL, e INT AS (YEAR(d)) VIRTUAL": "d, e",
    "a INT, d DATETIME AS (FROM_UNIXTIME(a)) VIRTUAL": "d",
    "a DATETIME, d DATE AS (DATE(a)) VIRTUAL": "",
    "a TIMESTAMP NULL, b INT, d INT AS (b + 1) VIRTUAL": "",
}


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_load_refuses_columns_whose_values_differ_from_the_log(
    kind: Kind, spark: SparkSession, fresh_server: StartServer, tmp_path: Path
) -> None:
    """Where the server allows them: MySQL has no FROM_UNIXTIME in generated columns."""
    server = fresh_server(kind, {"default_time_zone": "+05:00"})
    with live_source(spark, server, tmp_path) as live:
        cases = {f"t{number}": case for number, case in enumerate(COLUMNS) if kind == "mariadb" or "UNIX" not in case}
        live.run(*(f"CREATE TABLE {name} (id INT PRIMARY KEY, {columns})" for name, columns in cases.items()))
        live.run("CREATE TABLE kept (id INT PRIMARY KEY, a TIMESTAMP NULL, d DATETIME AS (a) STORED)")
        job = pipeline.read_tables_job(live.settings, (), again=False)
        errors = {
            one.table.partition(".")[2]: str(one.error["what"]) if one.error else ""
            for one in stage_tables(Threads(2), cast("Any", job.spec)).tables
        }
        what = "virtual columns depend on the time zone of the session: {}"
        zoned = {name: COLUMNS[columns] for name, columns in cases.items()}
        assert errors == {"kept": ""} | {name: what.format(names) if names else "" for name, names in zoned.items()}
        server.restart({"default_time_zone": "+00:00"})
        job = pipeline.read_tables_job(live.settings, (), again=False)
        assert [one.error for one in stage_tables(Threads(2), cast("Any", job.spec)).tables] == [None] * len(errors)
