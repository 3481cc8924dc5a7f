"""A real Airflow whose connection names a Spark cluster: its tasks run there, and a task that is stopped leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from infra.spark_cluster import SparkCluster, spark_cluster
from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, running, until
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


@pytest.fixture(scope="module")
def airflow(empty: Loaded, cluster: SparkCluster) -> Iterator[Airflow]:
    """The configuration says nothing of the cluster."""
    with empty.config.open("a", encoding="utf-8") as config:
        config.write('airflow.schedule = { delta = "", maintain = "" }\n')
    found = Airflow(empty.home / "airflow", empty.config)
    place = urlsplit(cluster.master)
    spark = {"conn_type": "spark", "host": f"spark://{place.hostname}", "port": place.port}
    found.env |= cluster.environment | {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark)}
    found.prepare()
    with running(found):
        found.unpause(LOAD)
        found.unpause(DELTA)
        yield found


def test_a_load_and_a_delta_that_are_stopped_leave_nothing_on_the_cluster(
    airflow: Airflow, empty: Loaded, cluster: SparkCluster
) -> None:
    """Their tasks are marked as failed. Cleared, they do the rest."""
    stopped_and_cleared(airflow, cluster, LOAD, "read_tables")
    assert empty.differences() == NOTHING_DIFFERS
    empty.execute(*changes(1))
    run = stopped_and_cleared(airflow, cluster, DELTA, "extract")
    assert {table["status"] for table in airflow.result(run, "materialise")["tables"]} == {"applied"}
    assert empty.differences() == NOTHING_DIFFERS
    applications = {path.parent.name for path in cluster.folder.glob("worker*/app-*/*")}
    assert len(applications) >= 4
    before = empty.snapshots()
    airflow.wait_for(DELTA, airflow.trigger(DELTA), "success")
    assert empty.snapshots() == before


def stopped_and_cleared(airflow: Airflow, cluster: SparkCluster, dag: str, task: str) -> str:
    """Mark the task of a new run as failed once it has executors, then clear it. Return the run."""
    run = airflow.trigger(dag)
    until("executors", lambda: airflow.tasks(dag, run)[task]["state"] == "running" and cluster.executors())
    airflow.patch(f"{dag}/dagRuns/{run}/taskInstances/{task}", new_state="failed")
    until("the executors to end", lambda: not cluster.executors(), 60)
    airflow.wait_for(dag, run, "failed")
    airflow.clear(run, task, dag)
    airflow.wait_for(dag, run, "success", tries=2)
    assert cluster.executors() == []
    return run
