"""Tasks that are stopped from outside: their processes end, and no row is lost or applied twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.airflow.running.processes import merges
from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, part_of, running, until
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]


@pytest.fixture(scope="module")
def airflow(empty: Loaded) -> Iterator[Airflow]:
    """An Airflow without its scheduler, after the initial load. It soon gives up a task that sends no sign of life."""
    found = Airflow(empty.home / "airflow", empty.config)
    found.lose_tasks_soon()
    found.replace_scheduler_soon()
    found.prepare()
    with running(found, "api-server", "dag-processor"):
        found.unpause(LOAD)
        with part_of(found, "scheduler"):
            found.wait_for(LOAD, found.trigger(LOAD), "success")
        found.unpause(DELTA)
        yield found


def test_marking_a_task_as_failed_ends_spark(airflow: Airflow, empty: Loaded) -> None:
    empty.execute(*changes(1))
    with part_of(airflow, "scheduler"):
        (run,) = until("the scheduled run", lambda: airflow.get(f"{DELTA}/dagRuns")["dag_runs"])
        until("Spark to run", lambda: merges(airflow))
        airflow.patch(f"{DELTA}/dagRuns/{run['dag_run_id']}/taskInstances/materialise", new_state="failed")
        until("Spark to end", lambda: not merges(airflow), 60)
        assert airflow.tasks(DELTA, run["dag_run_id"])["materialise"]["state"] == "failed"
        airflow.wait_for(DELTA, airflow.trigger(DELTA), "success")
    assert empty.differences() == NOTHING_DIFFERS


def test_a_scheduler_that_is_killed_and_started_again_finishes_the_run(airflow: Airflow, empty: Loaded) -> None:
    empty.execute(*changes(2))
    with part_of(airflow, "scheduler") as scheduler:
        run = airflow.trigger(DELTA)
        until("Spark to run", lambda: merges(airflow))
        scheduler.kill()
    with part_of(airflow, "scheduler"):
        airflow.wait_for(DELTA, run, "success")
        assert empty.differences() == NOTHING_DIFFERS
