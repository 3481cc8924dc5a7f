"""Executors, a worker and a driver that die on a standalone cluster, and tasks that run twice: no row is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.servers import start_server
from infra.servers.process import wait_until
from infra.spark_cluster import SparkCluster, spark_cluster
from loader.cli.demo.shop import create_shop
from tests.e2e.changes import changes
from tests.e2e.faults import fault_when
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]

ROUNDS = 60
RETRY = 3
"""Exit code of errors that a retry can help."""
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "1ms",
}
"""Half of the tasks of a stage run a second time."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


@pytest.fixture(scope="module")
def shop(
    request: pytest.FixtureRequest, cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory, jars: str
) -> Iterator[Loaded]:
    """A shop whose jobs run on the cluster. Its tables are compared on this machine."""
    folder = tmp_path_factory.mktemp("shop")
    with start_server("mysql", folder / "server") as server:
        compare = request.getfixturevalue
        found = Loaded(server, folder / "loader", jars, env=cluster.environment, spark=lambda: compare("spark"))
        use_cluster(found, cluster, {})
        create_shop(found.address, 20_000)
        found.create_user()
        yield found


def use_cluster(shop: Loaded, cluster: SparkCluster, conf: dict[str, str]) -> None:
    shop.configure()
    text = shop.config.read_text().replace('master = "local[2]"', f'master = "{cluster.master}"')
    lines = "".join(f', "{name}" = "{value}"' for name, value in conf.items())
    shop.config.write_text(text.replace('TieredStopAtLevel=1" }', f'TieredStopAtLevel=1"{lines} }}'))


def kill_executor(cluster: SparkCluster) -> None:
    os.kill(cluster.executors()[0], signal.SIGKILL)


def staged(shop: Loaded, pattern: str) -> set[Path]:
    return set((shop.home / "staging").rglob(pattern))


def write_changes(shop: Loaded, first: int) -> None:
    shop.execute(*(statement for number in range(first, first + ROUNDS) for statement in changes(number)))


def assert_applied_once(shop: Loaded) -> None:
    assert shop.differences() == NOTHING_DIFFERS
    snapshots = shop.snapshots()
    shop.json("run")
    assert shop.snapshots() == snapshots


def test_an_executor_dies_during_an_initial_load(shop: Loaded, cluster: SparkCluster) -> None:
    with fault_when(lambda: bool(staged(shop, "*.csv")) and bool(cluster.executors()), lambda: kill_executor(cluster)):
        assert {table["status"] for table in shop.json("initial-load")["tables"]} == {"applied"}
    shop.json("run")
    assert_applied_once(shop)


def test_an_executor_dies_while_the_log_is_staged(shop: Loaded, cluster: SparkCluster) -> None:
    write_changes(shop, 0)
    shop.json("plan")
    with fault_when(lambda: bool(cluster.executors()), lambda: kill_executor(cluster)):
        shop.json("extract")
    shop.json("materialise")
    assert_applied_once(shop)


def test_an_executor_dies_during_a_merge(shop: Loaded, cluster: SparkCluster) -> None:
    write_changes(shop, ROUNDS)
    shop.json("plan")
    shop.json("extract")
    with fault_when(lambda: bool(cluster.executors()), lambda: kill_executor(cluster)):
        shop.json("materialise")
    assert_applied_once(shop)


def test_a_worker_dies(shop: Loaded, cluster: SparkCluster) -> None:
    write_changes(shop, 2 * ROUNDS)
    with fault_when(lambda: len(cluster.executors()) > 1, cluster.kill_worker):
        shop.json("run")
    cluster.add_worker()
    assert_applied_once(shop)


def test_the_driver_dies(shop: Loaded, cluster: SparkCluster) -> None:
    write_changes(shop, 3 * ROUNDS)
    manifests = staged(shop, "manifest.json")
    argv = [sys.executable, "-m", "loader", "--config", str(shop.config), "run"]
    with subprocess.Popen(argv, env=os.environ | shop.env, stderr=subprocess.PIPE, text=True) as process:
        assert wait_until(lambda: staged(shop, "manifest.json") > manifests and bool(cluster.executors()), 600)
        for driver in subprocess.run(["pgrep", "-P", str(process.pid)], check=True, capture_output=True).stdout.split():
            os.killpg(int(driver), signal.SIGKILL)
        _, errors = process.communicate()
    assert process.returncode == RETRY
    assert "the Spark job ended without a result" in errors
    shop.json("run")
    assert_applied_once(shop)


def test_tasks_run_twice(shop: Loaded, cluster: SparkCluster) -> None:
    use_cluster(shop, cluster, SPECULATION)
    write_changes(shop, 4 * ROUNDS)
    shop.json("run")
    assert_applied_once(shop)
    assert {table["status"] for table in shop.json("initial-load", "--again")["tables"]} == {"applied"}
    shop.json("run")
    assert_applied_once(shop)
