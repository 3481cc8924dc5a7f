"""DAG files that users write: the examples of the page about Airflow, on a real server and Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from loader.cli.demo.dags import Airflow
from loader.config.file import load_config
from loader.errors import LoaderError
from loader.materialise.iceberg.warehouse import Warehouse
from tests.docs.pages import blocks, write_dag_files
from tests.e2e.airflow.running.processes import merges
from tests.e2e.airflow.running.server import DELTA, running, until
from tests.e2e.airflow.running.server import Airflow as Scheduled
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.airflow_version import AIRFLOW

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]
IN_PROCESS = pytest.mark.skipif(AIRFLOW == (3, 2), reason="this version of Airflow cannot run DAGs in one process")
INVENTORY = "shop.inventory"
TRIGGER = """
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

with DAG("nightly", schedule=None):
    TriggerDagRunOperator(task_id="trigger", trigger_dag_id="shop.delta")
"""


@pytest.fixture(scope="module")
def airflow(empty: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    dags = tmp_path_factory.mktemp("dags")
    write_dag_files(dags)
    with Airflow(empty.home / "airflow", empty.config, empty.home / "airflow.log", dags) as found:
        yield found


def statuses(result: dict[str, Any]) -> dict[str, str]:
    return {table["table"]: table["status"] for table in result["tables"]}


def without_runs(staged: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out the documents that name the intervals of each run."""
    return {name: content for name, content in staged.items() if "/runs/" not in name}


@IN_PROCESS
def test_a_load_and_a_delta(airflow: Airflow, empty: Loaded) -> None:
    first = airflow.run("shop_and_marts")
    assert statuses(first["load"]) == dict.fromkeys(NOTHING_DIFFERS, "applied")
    assert first["delta"]["tables"] == []
    assert first["build_marts"] == []
    empty.execute(*changes(1))
    second = airflow.run("shop_and_marts")
    assert statuses(second["load"]) == dict.fromkeys(NOTHING_DIFFERS, "already")
    changed = sorted(name for name, status in statuses(second["delta"]).items() if status == "applied")
    assert second["build_marts"] == changed == sorted(NOTHING_DIFFERS)
    assert second["delta"]["caught_up"] is True
    assert empty.differences() == NOTHING_DIFFERS
    before = empty.snapshots(), without_runs(empty.staged())
    third = airflow.run("shop_and_marts")
    assert statuses(third["delta"]) == dict.fromkeys(NOTHING_DIFFERS, "already")
    assert third["build_marts"] == []
    assert (empty.snapshots(), without_runs(empty.staged())) == before


@IN_PROCESS
def test_a_replay(airflow: Airflow, empty: Loaded, spark: SparkSession) -> None:
    empty.execute("UPDATE shop.inventory SET on_hand = 7 WHERE sku = 'SKU2'")
    assert statuses(airflow.run("shop_and_marts")["delta"])[INVENTORY] == "applied"
    warehouse = Warehouse(spark, load_config(str(empty.config)).source().catalog)
    warehouse.session.sql("UPDATE lake.shop.inventory SET on_hand = 99 WHERE sku = 'SKU2'")
    compared = airflow.run("shop_correct", tables=[INVENTORY])["replay"]
    assert statuses(compared) == {INVENTORY: "differs"}
    assert empty.differences() == NOTHING_DIFFERS | {INVENTORY: 2}
    published = airflow.run("shop_correct", tables=[INVENTORY], publish=True)["replay"]
    assert statuses(published) == {INVENTORY: "published"}
    assert empty.differences() == NOTHING_DIFFERS
    before = empty.snapshots()
    again = airflow.run("shop_correct", publish=True)["replay"]
    assert statuses(again) == dict.fromkeys(NOTHING_DIFFERS, "same")
    assert empty.snapshots() == before
    with pytest.raises(LoaderError, match="'somewhere' is not a place in a log"):
        airflow.run("shop_correct", start="somewhere")


def test_killing_the_task_ends_its_spark(empty: Loaded) -> None:
    """With a scheduler. A cleared task does the rest. Another DAG can trigger the delta, and no backfill can."""
    dag = "shop_and_marts"
    found = Scheduled(empty.home / "scheduled" / "airflow", empty.config)
    found.home.parent.mkdir()
    found.add_dag_file(next(block.text for block in blocks("python") if dag in block.text) + TRIGGER)
    found.prepare()
    empty.json("initial-load")
    empty.execute(*changes(5))
    with running(found):
        found.wait_until_known(dag)
        found.unpause(dag)
        run = found.trigger(dag)
        until("Spark to run", lambda: merges(found))
        found.patch(f"{dag}/dagRuns/{run}/taskInstances/delta", new_state="failed")
        until("Spark to end", lambda: not merges(found), 60)
        found.wait_for(dag, run, "failed")
        found.clear(run, "delta", dag)
        found.wait_for(dag, run, "success", tries=2)
        assert {task["state"] for task in found.tasks(dag, run).values()} == {"success"}
        assert found.tasks(dag, run)["delta"]["pool"] == "shop.spark"
        before = empty.snapshots()
        found.unpause(DELTA)
        found.wait_for(DELTA, triggered_by_dag(found), "success")
        start = min(empty.json("intervals"), key=lambda one: one["start_seqno"])["start"]
        assert refused_backfill(found) == ("2026-01-31T00:00:00Z", start)
        assert empty.snapshots() == before
    assert empty.differences() == NOTHING_DIFFERS


def triggered_by_dag(airflow: Scheduled) -> str:
    """Trigger the delta by a DAG. Return its run."""
    airflow.wait_until_known("nightly")
    airflow.unpause("nightly")
    run = airflow.trigger("nightly")
    airflow.wait_for("nightly", run, "success")
    return str(airflow.get(f"nightly/dagRuns/{run}/taskInstances/trigger/xcomEntries/trigger_run_id")["value"])


def refused_backfill(airflow: Scheduled) -> tuple[str, str]:
    """Backfill a date. Return the date and the position that the error of its run gives for the replay."""
    date = "2026-01-31T00:00:00Z"
    airflow.request("POST", "/api/v2/backfills", {"dag_id": DELTA, "from_date": date, "to_date": date})
    runs = airflow.get(f"{DELTA}/dagRuns?limit=100")["dag_runs"]
    (run,) = (one["dag_run_id"] for one in runs if one["run_type"] == "backfill")
    airflow.wait_for(DELTA, run, "failed")
    assert {task["state"] for task in airflow.tasks(DELTA, run).values()} == {"failed", "upstream_failed"}
    text = "\n".join(airflow.error(DELTA, run, "plan_interval", "this DAG cannot be backfilled by date"))
    (found,) = re.findall(r"trigger shop\.replay with from = (\S+), which is (\S+)", text)
    return found
