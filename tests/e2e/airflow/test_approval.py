"""A replay that a person approves or rejects, in a real Airflow by its REST API."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from loader.config.file import load_config
from loader.materialise.iceberg.warehouse import Warehouse
from tests.e2e.airflow.running.server import LOAD, Airflow, running
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
REPLAY = "shop.replay"
FORM = {"from": "begin", "approval": True, "tables": ["shop.inventory"]}
LATE = "UPDATE shop.inventory SET on_hand = 7 WHERE sku = 'SKU2'"


@pytest.fixture(scope="module")
def airflow(empty: Loaded) -> Iterator[Airflow]:
    found = Airflow(empty.home / "airflow", empty.config)
    found.prepare()
    with running(found):
        found.unpause(LOAD)
        found.unpause(REPLAY)
        found.wait_for(LOAD, found.trigger(LOAD), "success")
        empty.execute(LATE)
        empty.loader("run")
        yield found


@pytest.fixture(scope="module")
def warehouse(empty: Loaded, spark: SparkSession) -> Warehouse:
    return Warehouse(spark, load_config(str(empty.config)).source().catalog)


def asked(airflow: Airflow, warehouse: Warehouse) -> tuple[str, dict[str, Any]]:
    """Damage the row that changed, start a replay, and wait for its question: the run, and the question."""
    warehouse.session.sql("UPDATE lake.shop.inventory SET on_hand = 99 WHERE sku = 'SKU2'")
    run = airflow.trigger(REPLAY, **FORM)
    airflow.wait_for_question(REPLAY, run, "approve")
    return run, airflow.get(_question(run))


def answer(airflow: Airflow, run: str, option: str) -> None:
    airflow.patch(_question(run), chosen_options=[option])


def _question(run: str) -> str:
    return f"{REPLAY}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"


def newest_summary(warehouse: Warehouse) -> dict[str, str]:
    (row,) = warehouse.session.sql(
        "SELECT summary FROM lake.shop.inventory.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).collect()
    return dict(row["summary"])


def test_an_approved_replay_corrects_the_table(airflow: Airflow, warehouse: Warehouse, empty: Loaded) -> None:
    run, question = asked(airflow, warehouse)
    assert question["subject"] == "Correct 1 table?"
    assert "| shop.inventory | 0 | 1 | 0 |" in question["body"]
    assert "'on_hand': 99" in question["body"]
    assert empty.differences() == NOTHING_DIFFERS | {"shop.inventory": 2}
    answer(airflow, run, "Approve")
    airflow.wait_for(REPLAY, run, "success")
    states = {name: task["state"] for name, task in airflow.tasks(REPLAY, run).items()}
    assert states == {
        "restore_files": "skipped", "compare": "success", "approve": "success", "publish": "success"
    }  # fmt: skip
    assert empty.differences() == NOTHING_DIFFERS
    assert newest_summary(warehouse)["loader.approved_by"]
    (corrected,) = airflow.asset_events(REPLAY, run)
    assert corrected["name"] == "lake.shop.inventory"

    with pytest.raises(urllib.error.HTTPError, match="409"):
        answer(airflow, run, "Approve")
    before = empty.snapshots()
    airflow.clear(run, "publish", REPLAY)
    airflow.wait_for(REPLAY, run, "success", tries=2)
    assert empty.snapshots() == before


def test_a_rejected_replay_changes_nothing(airflow: Airflow, warehouse: Warehouse, empty: Loaded) -> None:
    run, _ = asked(airflow, warehouse)
    before = empty.snapshots()
    answer(airflow, run, "Reject")
    airflow.wait_for(REPLAY, run, "success")
    assert airflow.tasks(REPLAY, run)["publish"]["state"] == "skipped"
    airflow.clear(run, "publish", REPLAY)
    airflow.wait_for(REPLAY, run, "success")
    assert airflow.tasks(REPLAY, run)["publish"]["state"] == "skipped"
    assert empty.snapshots() == before
    assert empty.differences() == NOTHING_DIFFERS | {"shop.inventory": 2}
