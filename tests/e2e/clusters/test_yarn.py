"""The loader on YARN, in client mode. Staging and warehouse are on the HDFS of the cluster, as a user of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pyspark
import pytest
from hdfs import InsecureClient

from infra.hdfs import HdfsServer
from infra.servers import start_server
from infra.servers.process import wait_until
from infra.yarn import YarnCluster, yarn_cluster
from loader.cli.demo.shop import TABLES, create_shop
from loader.resources import cache_folder
from loader.spark.job_files import RESULTS
from loader.store.registry import open_store
from tests.chaos.access.source import History, Session
from tests.chaos.comparison.rows import server_rows, warehouse_rows
from tests.contract.conftest import hdfs_user
from tests.e2e.changes import changes
from tests.e2e.faults import fault_when
from tests.e2e.loaded import Loaded, assert_loaded_and_followed
from tests.support.hdfs_tables import copied_table

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(3600),
    pytest.mark.sweep,
]

PASSWORD = "correct horse battery staple"
REFUSED, AGAIN, DAMAGED = 2, 3, 4
"""Exit codes of wrong usage, of what a retry may cure, and of damaged data."""
ROUNDS = range(10, 40)
USER = "etl"
PYTHON = f'python = "{sys.executable}"'
CONF = {
    # The jars of Spark are on every node, and so are the kernels.
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
    "spark.executorEnv.LOADER_CACHE": str(cache_folder()),
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.yarn.am.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
CLUSTER = {"spark.submit.deployMode": "cluster", "spark.driver.memory": "1g"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, hdfs_server: HdfsServer) -> Iterator[YarnCluster]:
    with yarn_cluster(tmp_path_factory.mktemp("yarn"), hdfs_server) as found:
        yield found
        assert wait_until(lambda: not found.containers(), 60)


@pytest.fixture(scope="module")
def owner(hdfs_server: HdfsServer) -> Iterator[InsecureClient]:
    """The owner of the file system, in which the user of the loader has two folders."""
    client = InsecureClient(hdfs_server.web, user=hdfs_user())
    client.makedirs("/user", permission="755")
    for folder in ("/lake", f"/user/{USER}"):
        client.makedirs(folder, permission="700")
        client.set_owner(folder, owner=USER)
    yield client
    for folder in ("/lake", "/user"):
        client.delete(folder, recursive=True)


@pytest.fixture(scope="module")
def shop(
    cluster: YarnCluster,
    hdfs_server: HdfsServer,
    owner: InsecureClient,
    tmp_path_factory: pytest.TempPathFactory,
    jars: str,
) -> Iterator[Loaded]:
    """A shop whose jobs run on the cluster. The password is in the environment of the command only."""
    folder = tmp_path_factory.mktemp("shop")
    with start_server("mysql", folder / "server") as server:
        found = Loaded(server, folder / "loader", jars, env={"SHOP_PASSWORD": PASSWORD, **cluster.environment})
        create_shop(found.address, 3000)
        found.create_user()
        found.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{PASSWORD}'")
        use_yarn(found, hdfs_server, PYTHON)
        yield found


@pytest.fixture(scope="module")
def loaded(shop: Loaded, hdfs_server: HdfsServer) -> Loaded:
    """The shop when its tables are loaded, by an earlier test or here."""
    use_yarn(shop, hdfs_server, PYTHON)
    shop.json("initial-load")  # tables that are loaded stay as they are
    return shop


def use_yarn(shop: Loaded, hdfs: HdfsServer, python: str, conf: Mapping[str, str] = MappingProxyType({})) -> None:
    """Configure the cluster, and how its executors get their Python."""
    options = f'hdfs = {{ webhdfs = "{hdfs.web}", user = "{USER}" }}'
    shop.configure(
        password="env:SHOP_PASSWORD",
        staging=f'root = "{hdfs.address}/lake/staging"\n{options}',
        warehouse=f'path = "{hdfs.address}/lake/warehouse"',
    )
    if CLUSTER.items() <= conf.items():
        (shop.home / "password").write_text(PASSWORD)  # the driver has no environment of the command
        shop.config.write_text(shop.config.read_text().replace("env:SHOP_PASSWORD", f"file:{shop.home}/password"))
    text = shop.config.read_text().replace('master = "local[2]"', f'master = "yarn"\n{python}')
    lines = "".join(f', "{name}" = "{value}"' for name, value in {**CONF, **conf}.items())
    shop.config.write_text(text.replace('TieredStopAtLevel=1" }', f'TieredStopAtLevel=1"{lines} }}'))


def assert_equal_from_outside(shop: Loaded, hdfs: HdfsServer, folder: Path) -> None:
    """Check that PyIceberg reads exactly the rows of the server."""
    session = Session(shop.server, History(), "reader", database="shop")
    for table in TABLES:
        name = table.partition(".")[2]
        columns = session.columns(name)
        arrow = copied_table(hdfs, hdfs_user(), f"/lake/warehouse/shop/{name}", folder / name).scan().to_arrow()
        rows = Counter(warehouse_rows(arrow, columns))
        assert rows == Counter(server_rows(shop.server, "shop", name, columns))
        assert rows
    session.close()


def kill_executor(cluster: YarnCluster) -> None:
    os.kill(cluster.executors()[0], signal.SIGKILL)


def program(pid: int) -> str:
    return str(Path(f"/proc/{pid}/exe").readlink())


def csv_files(hdfs: HdfsServer) -> set[str]:
    store = open_store(f"{hdfs.address}/lake/staging?webhdfs={hdfs.web}&user={USER}")
    return {info.key for info in store.list("shop/") if info.key.endswith(".csv")}


def refusal(shop: Loaded, **env: str) -> tuple[str, str]:
    """Return what an initial load says that is refused, and why."""
    refused = shop.loader("--json", "initial-load", **env)
    assert refused.returncode == REFUSED, (refused.stdout, refused.stderr)
    error = json.loads(refused.stdout)
    return error["what"], error["why"]


def test_what_yarn_lacks_is_named(shop: Loaded, hdfs_server: HdfsServer) -> None:
    assert refusal(shop, HADOOP_CONF_DIR="") == (
        "no configuration of YARN was found",
        "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set",
    )
    use_yarn(shop, hdfs_server, PYTHON, {"spark.yarn.stagingDir": "/elsewhere"})
    what, why = refusal(shop)
    assert what == "HDFS refused the user of the job when Spark started"
    assert why.startswith(f'Permission denied: user={USER}, access=WRITE, inode="/"')
    use_yarn(shop, hdfs_server, PYTHON)


def test_tables_are_loaded_and_followed(
    shop: Loaded, cluster: YarnCluster, hdfs_server: HdfsServer, owner: InsecureClient, tmp_path: Path
) -> None:
    assert_loaded_and_followed(shop, TABLES)
    assert_equal_from_outside(shop, hdfs_server, tmp_path)
    logs = [path for path in cluster.folder.rglob("*") if path.is_file()]
    assert {"stderr", "NodeManager.log", "ResourceManager.log"} <= {path.name for path in logs}
    assert [path for path in logs if PASSWORD.encode() in path.read_bytes()] == []
    assert owner.list(f"/user/{USER}/.sparkStaging") == []


def test_executors_run_a_package_and_one_dies_during_an_initial_load(
    shop: Loaded, cluster: YarnCluster, hdfs_server: HdfsServer, tmp_path: Path
) -> None:
    archive = tmp_path / "loader.tar.gz"
    shop.json("package", str(archive))
    InsecureClient(hdfs_server.web, user=USER).upload("/lake/loader.tar.gz", str(archive))
    package = f'package = "{hdfs_server.address}/lake/loader.tar.gz"'
    use_yarn(shop, hdfs_server, package)
    drivers: list[str] = []
    before = csv_files(hdfs_server)

    def is_staging() -> bool:
        return bool(cluster.executors()) and csv_files(hdfs_server) > before

    with fault_when(is_staging, lambda: kill_executor(cluster)):
        assert {table["status"] for table in shop.json("initial-load", "--again")["tables"]} == {"applied"}
    shop.json("run")
    assert len(list(cluster.folder.rglob("loader.tar.gz/bin/python"))) == 1  # unpacked once for all executors
    assert not [log for log in cluster.folder.rglob("stderr") if b"Unpacking an archive" in log.read_bytes()]
    use_yarn(shop, hdfs_server, package, CLUSTER)
    shop.execute(*changes(9))
    with fault_when(lambda: bool(cluster.drivers()), lambda: drivers.extend(map(program, cluster.drivers()))):
        shop.json("run")
    assert [path for path in drivers if "/loader.tar.gz/" not in path] == []
    assert_equal_from_outside(shop, hdfs_server, tmp_path)


def test_executors_die_while_the_log_is_staged_and_merged(
    loaded: Loaded, cluster: YarnCluster, hdfs_server: HdfsServer, tmp_path: Path
) -> None:
    use_yarn(loaded, hdfs_server, PYTHON)
    loaded.execute(*(statement for number in ROUNDS for statement in changes(number)))
    loaded.json("plan")
    for stage in ("extract", "materialise"):
        with fault_when(lambda: bool(cluster.executors()), lambda: kill_executor(cluster)):
            loaded.json(stage)
    assert_equal_from_outside(loaded, hdfs_server, tmp_path)
    assert {table["status"] for table in loaded.json("materialise")["tables"]} == {"already"}


def test_the_driver_runs_on_the_cluster(
    loaded: Loaded, cluster: YarnCluster, hdfs_server: HdfsServer, tmp_path: Path
) -> None:
    use_yarn(loaded, hdfs_server, PYTHON, CLUSTER)
    loaded.execute(*(statement for number in ROUNDS for statement in changes(number + 50)))
    loaded.json("run")
    assert set(statuses(loaded, "initial-load", "--again")) == {"applied"}
    loaded.execute(*(statement for number in ROUNDS for statement in changes(number + 100)))
    loaded.json("run")
    assert set(statuses(loaded, "materialise")) == {"already"}
    assert_equal_from_outside(loaded, hdfs_server, tmp_path)
    assert [log for log in cluster.folder.rglob("stdout") if b"INFO loader.materialise" in log.read_bytes()]
    assert results(hdfs_server) == []


def test_the_error_of_a_driver_on_the_cluster_reaches_the_command(loaded: Loaded, hdfs_server: HdfsServer) -> None:
    use_yarn(loaded, hdfs_server, PYTHON, CLUSTER)
    loaded.execute(*changes(150))
    before = csv_files(hdfs_server)
    loaded.json("plan")
    loaded.json("extract")
    lost = f"/lake/staging/{min(csv_files(hdfs_server) - before)}"
    client = InsecureClient(hdfs_server.web, user=USER)
    client.rename(lost, f"{lost}.away")
    failed = [table for table in loaded.json("materialise", code=DAMAGED)["tables"] if table["error"]]
    assert [table["error"]["what"] for table in failed] == ["a staged file is missing"]
    client.rename(f"{lost}.away", lost)
    loaded.json("release", failed[0]["table"])
    loaded.json("run")


def test_a_driver_on_the_cluster_dies(
    loaded: Loaded, cluster: YarnCluster, hdfs_server: HdfsServer, tmp_path: Path
) -> None:
    use_yarn(loaded, hdfs_server, PYTHON, CLUSTER)
    loaded.execute(*(statement for number in ROUNDS for statement in changes(number + 200)))
    with fault_when(lambda: bool(cluster.executors()), lambda: os.kill(cluster.drivers()[0], signal.SIGKILL)):
        error = loaded.json("run", code=AGAIN)
    assert error["what"] == "the Spark job ended without a result"
    assert re.match(r"read the log of the driver: yarn logs -applicationId application_\d+_\d+; ", error["hint"])
    loaded.json("run")
    assert_equal_from_outside(loaded, hdfs_server, tmp_path)
    assert results(hdfs_server) == []


def test_an_interrupted_command_ends_its_driver_on_the_cluster(
    loaded: Loaded, cluster: YarnCluster, hdfs_server: HdfsServer, tmp_path: Path
) -> None:
    use_yarn(loaded, hdfs_server, PYTHON, CLUSTER)
    loaded.execute(*(statement for number in ROUNDS for statement in changes(number + 300)))
    running = subprocess.Popen(
        [sys.executable, "-m", "loader", "--config", str(loaded.config), "run"], env=os.environ | loaded.env
    )
    assert wait_until(lambda: bool(cluster.executors()), 120)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) != 0
    assert wait_until(lambda: not cluster.containers(), 60)
    loaded.json("run")
    assert_equal_from_outside(loaded, hdfs_server, tmp_path)


def statuses(shop: Loaded, *command: str) -> list[str]:
    return [table["status"] for table in shop.json(*command)["tables"]]


def results(hdfs: HdfsServer) -> list[str]:
    """Return the results of jobs that lie in the staging store."""
    store = open_store(f"{hdfs.address}/lake/staging?webhdfs={hdfs.web}&user={USER}")
    return [info.key for info in store.list(RESULTS)]
