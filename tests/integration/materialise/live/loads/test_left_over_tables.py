"""The server and the staging root are new, and the warehouse still has the tables of the source from before."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from loader import pipeline
from loader.initial_load.run import stage_tables
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.load_run import load
from loader.materialise.spec import MaterialiseResult
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.materialise.live_source import LiveSource, live
from tests.integration.pipeline.conftest import settings_of
from tests.support.replicas import address_of, run

__all__ = ["live"]
pytestmark = pytest.mark.integration
WHAT = "the table's applied position is not in the log of this source"


def test_a_table_that_is_beyond_everything_planned(live: LiveSource, fresh_server: StartServer, tmp_path: Path) -> None:
    run(live.server, *["FLUSH BINARY LOGS"] * 5)
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    live.load()
    live.run("INSERT INTO a VALUES (2)")
    live.delta()

    server = fresh_server()
    run(server, f"CREATE DATABASE {live.database}")
    settings = settings_of(address_of(server), f"{live.database}.*", tmp_path)
    settings = settings.model_copy(update={"staging_root": f"file://{tmp_path}/new"})
    new = LiveSource(live.spark, server, live.database, settings)
    new.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (7)")
    (refused,) = _load(new).tables
    assert refused.error is not None
    assert refused.error["what"] == WHAT
    new.run("INSERT INTO a VALUES (8)")
    (stopped,) = new.delta().tables
    assert (stopped.status, stopped.error and stopped.error["what"]) == ("quarantined", WHAT)

    _drop(new, "a")
    new.load_again("a")
    new.run("INSERT INTO a VALUES (9)")
    assert new.statuses(new.delta()) == {"a": "applied"}
    assert new.differences() == []


def test_a_table_whose_position_the_new_log_passes(live: LiveSource, fresh_server: StartServer, tmp_path: Path) -> None:
    """Its position names another place of the new log. What the log has before that place must not be left out."""
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    live.load()
    live.run("INSERT INTO a VALUES (2)")
    live.delta()
    reached = int(str(run(live.server, "SHOW BINARY LOGS")[-1][0]).rpartition(".")[2])

    server = fresh_server()
    run(server, f"CREATE DATABASE {live.database}")
    settings = settings_of(address_of(server), f"{live.database}.*", tmp_path)
    settings = settings.model_copy(update={"staging_root": f"file://{tmp_path}/new"})
    pipeline.begin(settings)
    new = LiveSource(live.spark, server, live.database, settings)
    new.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (7)")
    run(server, *["FLUSH BINARY LOGS"] * (reached + 1))
    new.run("INSERT INTO a VALUES (8)")
    (stopped,) = new.delta().tables
    assert (stopped.status, stopped.error and stopped.error["what"]) == ("quarantined", WHAT)

    _drop(new, "a")
    new.load_again("a")
    new.run("INSERT INTO a VALUES (9)")
    assert new.statuses(new.delta()) == {"a": "applied"}
    assert new.differences() == []


def _load(source: LiveSource) -> MaterialiseResult:
    read = stage_tables(Threads(2), cast("Any", pipeline.read_tables_job(source.settings, ()).spec))
    return load(source.spark, cast("Any", pipeline.load_tables_job(source.settings, read.manifests).spec))


def _drop(source: LiveSource, table: str) -> None:
    warehouse = Warehouse(source.spark, source.settings.catalog)
    warehouse.session.sql(f"DROP TABLE {warehouse.catalog.name}.{source.database}.{table} PURGE")
