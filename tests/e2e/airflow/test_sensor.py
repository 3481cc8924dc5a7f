"""A sensor that waits for a table in the triggerer of a real Airflow, which holds no worker meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.e2e.airflow.running.server import PARTS, Airflow, running, until
from tests.e2e.changes import changes
from tests.e2e.loaded import Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.sweep,
]
REPORT = "orders_report"
DAG_FILE = """
from airflow.sdk import DAG, Param, task

from loader.airflow.sensors import TableAtLeastSensor

with DAG("orders_report", params={name: Param("", type="string") for name in ("table", "position", "time")}):
    wait = TableAtLeastSensor(
        task_id="wait", source="shop", table="{{ params.table }}", position="{{ params.position }}",
        time="{{ params.time }}", poke_interval=1, timeout=300,
    )

    @task
    def report() -> None:
        pass

    wait >> report()
"""
_PASSWORD = "of-the-reader"


@pytest.fixture(scope="module")
def airflow(empty: Loaded) -> Iterator[Airflow]:
    """An Airflow with a triggerer. The shop is loaded, and Airflow alone has its password."""
    empty.json("initial-load")
    empty.execute(*changes(1))
    empty.json("run")
    found = Airflow(empty.home / "airflow", empty.config)
    found.add_dag_file(DAG_FILE)
    found.prepare()
    with running(found, *dict.fromkeys((*PARTS, "triggerer"))):
        found.wait_until_known(REPORT)
        found.unpause(REPORT)
        found.add_connection("shop_db", conn_type="binlog_source", password=_PASSWORD)
        empty.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{_PASSWORD}'")
        empty.configure(password="airflow:shop_db")
        yield found


@pytest.fixture
def by_hand(empty: Loaded) -> Iterator[Loaded]:
    """The shop for a person at the command line, who has the password too."""
    secret = empty.home / "secret"
    secret.write_text(_PASSWORD)
    mine = empty.home / "mine.toml"
    mine.write_text(empty.config.read_text(encoding="utf-8").replace("airflow:shop_db", f"file:{secret}"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loaded, "config", mine)
        yield empty


def started(airflow: Airflow, table: str = "shop.orders", **goal: str) -> str:
    return airflow.trigger(REPORT, table=table, **goal)


def deferred(airflow: Airflow, run: str) -> None:
    """Wait until the task waits in the triggerer."""
    until("the sensor to wait", lambda: _wait(airflow, run)["state"] == "deferred")
    until("the trigger to run", lambda: (_wait(airflow, run)["trigger"] or {}).get("triggerer_id"))


def _wait(airflow: Airflow, run: str) -> dict[str, Any]:
    return airflow.tasks(REPORT, run)["wait"]


def test_a_table_that_is_up_to_date_ends_the_wait_at_once(airflow: Airflow, by_hand: Loaded) -> None:
    newest = by_hand.json("intervals")[-1]
    run = started(airflow, position=newest["stop"])
    airflow.wait_for(REPORT, run, "success")
    assert not [line for line in airflow.log(REPORT, run, "wait") if "deferral" in line]


def test_positions_and_times_are_waited_for_at_the_same_time(airflow: Airflow, by_hand: Loaded) -> None:
    by_hand.execute(*changes(2))
    goal = by_hand.json("plan")["stop"]
    now = datetime.now(UTC).isoformat()
    runs = [started(airflow, position=goal)]
    runs += [started(airflow, table, time=now) for table in ("shop.orders", "shop.customers", "shop.reviews")]
    for run in runs:
        deferred(airflow, run)
    assert all(airflow.tasks(REPORT, run)["report"]["state"] is None for run in runs)
    by_hand.json("run")
    for run in runs:
        airflow.wait_for(REPORT, run, "success")


def test_a_server_that_is_down_is_waited_for(airflow: Airflow, by_hand: Loaded) -> None:
    by_hand.execute(*changes(3))
    run = started(airflow, time=datetime.now(UTC).isoformat())
    deferred(airflow, run)
    by_hand.server.stop()
    try:
        until("the trigger to ask", lambda: "the server does not answer" in logs(airflow, run))
        assert _wait(airflow, run)["state"] == "deferred"
    finally:
        by_hand.server.start()
    by_hand.json("run")
    airflow.wait_for(REPORT, run, "success")


def test_a_table_that_stops_ends_the_wait_with_its_error(airflow: Airflow, by_hand: Loaded) -> None:
    by_hand.execute(
        "CREATE TABLE shop.dates (id INT PRIMARY KEY, day DATE)",
        "INSERT INTO shop.dates VALUES (1, '2026-01-01')",
        "SET SESSION sql_mode = ''",
        "INSERT INTO shop.dates VALUES (2, '0000-00-00')",
    )
    goal = by_hand.json("plan")["stop"]
    run = started(airflow, "shop.dates", position=goal)
    deferred(airflow, run)
    by_hand.json("run", code=4)
    airflow.wait_for(REPORT, run, "failed")
    _ends_with(airflow, run, "the table is quarantined, so waiting for it does not help", "loader release shop.dates")


def test_a_wrong_goal_fails_at_once(airflow: Airflow) -> None:
    run = started(airflow, time="noon")
    airflow.wait_for(REPORT, run, "failed")
    _ends_with(airflow, run, "'noon' is not a time", "2026-01-31T12:00:00Z")


def logs(airflow: Airflow, run: str) -> str:
    """All logs of the sensor's task, with those of its trigger."""
    folder = airflow.home / "logs" / f"dag_id={REPORT}" / f"run_id={run}" / "task_id=wait"
    return "\n".join(file.read_text(encoding="utf-8") for file in folder.iterdir())


def _ends_with(airflow: Airflow, run: str, what: str, cure: str) -> None:
    """The log of the task ends with this error and its cure; the tasks after it do not run."""
    assert airflow.tasks(REPORT, run)["report"]["state"] == "upstream_failed"
    (cured,) = [line for line in airflow.error(REPORT, run, "wait", what) if line.startswith("  what to do: ")]
    assert cure in cured
