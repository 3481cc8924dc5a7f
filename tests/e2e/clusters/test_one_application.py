"""A run of the delta DAG on a cluster starts one Spark application, which extracts and merges."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infra.servers import start_server
from infra.spark_cluster import spark_cluster
from loader.cli.demo.dags import Airflow
from loader.cli.demo.shop import create_shop
from loader.errors import LoaderError
from tests.e2e.changes import changes
from tests.e2e.loaded import Loaded

pytestmark = pytest.mark.e2e
TABLES = ("shop.customers", "shop.orders")


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=pytest.mark.sweep) for one in ("local-cluster[2,1,1024]", "standalone")],
)
def master(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The master of Spark, in the connection of Airflow."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "standalone":
            patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": request.param}))
            yield request.param
            return
        with spark_cluster(tmp_path_factory.mktemp("cluster"), 2) as cluster:
            for name, value in cluster.environment.items():
                patch.setenv(name, value)
            patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": cluster.master}))
            yield cluster.master


@pytest.fixture(scope="module")
def shop(master: str, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """A shop that this machine has loaded. Spark notes each application."""
    folder = tmp_path_factory.mktemp("one-application")
    with start_server("mysql", folder / "server") as server:
        found = Loaded(server, folder / "loader", jars)
        found.configure()
        create_shop(found.address, 500)
        found.create_user()
        found.json("initial-load", *(part for table in TABLES for part in ("--table", table)))
        (folder / "loader" / "events").mkdir()
        noted = f'" , "spark.eventLog.enabled" = "true", "spark.eventLog.dir" = "{folder}/loader/events" }}'
        text = found.config.read_text().replace('"shop.*"', ", ".join(f'"{table}"' for table in TABLES))
        found.config.write_text(text.replace('" }', noted))
        yield found


def applications(shop: Loaded) -> int:
    return len(list((shop.home / "events").iterdir()))


def asset_events(home: Path) -> set[str]:
    """Return the names of the assets of all events."""
    with closing(sqlite3.connect(home / "airflow.db")) as database:
        return {name for (name,) in database.execute("SELECT name FROM asset JOIN asset_event ON asset_id = asset.id")}


def airflow_of(shop: Loaded) -> Airflow:
    return Airflow(shop.home / "airflow", shop.config, shop.home / "airflow.log")


def test_a_run_starts_one_application(shop: Loaded) -> None:
    shop.execute(*changes(1))
    before = applications(shop)
    with airflow_of(shop) as airflow:
        done = airflow.run("shop.delta")
        assert applications(shop) == before + 1
        assert (done["extract"]["status"], done["extract"]["stop"]) == ("staged", done["plan_interval"]["stop"])
        assert {table["table"]: table["status"] for table in done["materialise"]["tables"]} == dict.fromkeys(
            TABLES, "applied"
        )
        staged = {one["table"]: (one["inserts"], one["updates"], one["deletes"]) for one in done["extract"]["tables"]}
        merged = {
            one["table"]: (one["inserts"], one["updates"], one["deletes"]) for one in done["materialise"]["tables"]
        }
        assert merged == staged
        assert asset_events(shop.home / "airflow") == {f"lake.{table}" for table in TABLES}
        snapshots = shop.snapshots()
        again = airflow.run("shop.delta")
    assert {table["status"] for table in again["materialise"]["tables"]} == {"already"}
    assert (applications(shop), shop.snapshots()) == (before + 1, snapshots)
    assert shop.differences(TABLES) == dict.fromkeys(TABLES, 0)


@pytest.mark.sweep
def test_a_driver_that_is_killed_in_the_merge_fails_the_task_of_the_merge(
    shop: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute(*changes(2))
    before = applications(shop)
    with monkeypatch.context() as broken, pytest.raises(LoaderError, match="the Spark job ended without a result"):
        broken.setenv("LOADER_FAILPOINT", "delete.after")
        with airflow_of(shop) as airflow:
            airflow.run("shop.delta")
    assert "everything is staged, and the merge is tried again" in (shop.home / "airflow.log").read_text()
    assert applications(shop) == before + 2
    with airflow_of(shop) as airflow:
        healed = airflow.run("shop.delta")
    assert healed["extract"]["status"] == "already"
    assert {table["status"] for table in healed["materialise"]["tables"]} == {"applied"}
    assert applications(shop) == before + 3
    assert shop.differences(TABLES) == dict.fromkeys(TABLES, 0)
