"""Questions to a person that are answered late, twice, by another person, or never, in a real Airflow with a login."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from loader.config.file import load_config
from loader.materialise.iceberg.warehouse import Warehouse
from tests.e2e.airflow.running.server import LOAD, Airflow, running, until
from tests.e2e.airflow.test_approval import newest_summary
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]
REPAIR, REPLAY = "shop.repair", "shop.replay"
REPLAY_HOURS, REPAIR_HOURS = 0.05, 0.02
"""Time limits of the DAGs, within which a person must answer."""


@pytest.fixture(scope="module")
def airflow(empty: Loaded) -> Iterator[Airflow]:
    limits = f"airflow.timeout_hours = {{ replay = {REPLAY_HOURS}, repair = {REPAIR_HOURS} }}\n"
    with empty.config.open("a", encoding="utf-8") as config:
        config.write(f'airflow.schedule = {{ delta = "" }}\nairflow.retries = 0\n{limits}')
    found = Airflow(empty.home / "airflow", empty.config)
    found.require_login(ada="admin", bob="viewer")
    found.prepare()
    with running(found):
        for dag in (LOAD, REPAIR, REPLAY):
            found.unpause(dag)
        found.wait_for(LOAD, found.trigger(LOAD), "success")
        empty.execute("UPDATE shop.inventory SET on_hand = 7 WHERE sku = 'SKU2'")
        empty.json("run")
        yield found


@pytest.fixture(scope="module")
def warehouse(empty: Loaded, spark: SparkSession) -> Warehouse:
    return Warehouse(spark, load_config(str(empty.config)).source().catalog)


def question(dag: str, run: str, task: str) -> str:
    return f"{dag}/dagRuns/{run}/taskInstances/{task}/-1/hitlDetails"


def state(airflow: Airflow, dag: str, run: str, task: str) -> str:
    return str(airflow.tasks(dag, run)[task]["state"])


def shown(warehouse: Warehouse, loaded: Loaded) -> tuple[int, dict[str, list[str]], dict[str, bytes]]:
    """Return what readers of the replayed table see, the metadata files of the other tables, and the staged files."""
    refs = warehouse.session.sql("SELECT snapshot_id FROM lake.shop.inventory.refs WHERE name = 'main'")
    return refs.collect()[0][0], loaded.snapshots() | {"inventory": []}, loaded.staged()


def test_a_question_that_nobody_answers_changes_nothing(airflow: Airflow, warehouse: Warehouse, empty: Loaded) -> None:
    warehouse.session.sql("UPDATE lake.shop.inventory SET on_hand = 99 WHERE sku = 'SKU2'")
    place = empty.json("status")["log_end"]
    empty.execute("UPDATE shop.inventory SET on_hand = 8 WHERE sku = 'SKU3'")
    before = shown(warehouse, empty)
    runs = {
        REPLAY: airflow.trigger(REPLAY, **{"from": "begin", "approval": True, "tables": ["shop.inventory"]}),
        REPAIR: airflow.trigger(REPAIR, action="skip", transaction=place, reason="a test"),
    }
    tasks = {REPAIR: ("approve_skip", "skip"), REPLAY: ("approve", "publish")}
    for dag, (task, _) in tasks.items():
        airflow.wait_for_question(dag, runs[dag], task)
    for dag, (task, last) in tasks.items():
        airflow.wait_for(dag, runs[dag], "success")
        assert (state(airflow, dag, runs[dag], task), state(airflow, dag, runs[dag], last)) == ("success", "skipped")
        details = airflow.get(question(dag, runs[dag], task))
        assert (details["chosen_options"], details["responded_by_user"]) == (["Reject"], None)
        with pytest.raises(urllib.error.HTTPError, match="409"):  # it is too late
            airflow.patch(question(dag, runs[dag], task), chosen_options=["Approve"])
        airflow.clear(runs[dag], last, dag)
        airflow.wait_for(dag, runs[dag], "success")
        assert state(airflow, dag, runs[dag], last) == "skipped"
    assert shown(warehouse, empty) == before
    assert empty.json("status")["skips"] == []


def test_a_question_that_is_asked_again_is_answered_once(airflow: Airflow, warehouse: Warehouse, empty: Loaded) -> None:
    """A person clears the question that expired, and approves it. The tables have the name of the person."""
    (run,) = [one["dag_run_id"] for one in airflow.get(f"{REPLAY}/dagRuns")["dag_runs"]]
    airflow.clear(run, "approve", REPLAY)
    airflow.wait_for_question(REPLAY, run, "approve")
    airflow.patch(question(REPLAY, run, "approve"), chosen_options=["Approve"])
    for option in ("Reject", "Approve"):
        with pytest.raises(urllib.error.HTTPError, match="409"):
            airflow.patch(question(REPLAY, run, "approve"), chosen_options=[option])
    airflow.wait_for(REPLAY, run, "success", tries=2)
    assert state(airflow, REPLAY, run, "publish") == "success"
    assert newest_summary(warehouse)["loader.approved_by"] == "ada"
    before = empty.snapshots()
    airflow.clear(run, "publish", REPLAY)
    until("the second try", lambda: airflow.tasks(REPLAY, run)["publish"]["try_number"] == 2)
    airflow.wait_for(REPLAY, run, "success", tries=2)
    assert empty.snapshots() == before

    run = airflow.trigger(REPAIR, action="skip", transaction=empty.json("status")["applied"], reason="a test")
    airflow.wait_for_question(REPAIR, run, "approve_skip")
    airflow.patch(question(REPAIR, run, "approve_skip"), chosen_options=["Approve"])
    airflow.wait_for(REPAIR, run, "success")
    (skipped,) = empty.json("status")["skips"]
    assert (skipped["by"], skipped["reason"]) == ("ada", "a test")
    empty.json("run")
    assert empty.differences() == NOTHING_DIFFERS | {"shop.inventory": 2}


def test_who_may_only_look_answers_nothing(airflow: Airflow, empty: Loaded) -> None:
    place = empty.json("status")["log_end"]
    empty.execute("UPDATE shop.inventory SET on_hand = 9 WHERE sku = 'SKU4'")
    run = airflow.trigger(REPAIR, action="skip", transaction=place, reason="a test")
    airflow.wait_for_question(REPAIR, run, "approve_skip")
    bob = airflow.login("bob")
    for body in ({"chosen_options": ["Approve"]}, {"chosen_options": ["Reject"]}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            bob("PATCH", f"/api/v2/dags/{question(REPAIR, run, 'approve_skip')}", body)
    assert airflow.get(question(REPAIR, run, "approve_skip"))["responded_by_user"] is None
    airflow.patch(question(REPAIR, run, "approve_skip"), chosen_options=["Reject"])
    airflow.wait_for(REPAIR, run, "success")
    assert state(airflow, REPAIR, run, "skip") == "skipped"
