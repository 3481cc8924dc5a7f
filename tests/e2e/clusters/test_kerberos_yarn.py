"""YARN and HDFS with Kerberos, in client mode: only the driver has a ticket."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from infra.servers import start_server
from infra.servers.process import wait_until
from infra.yarn import YarnCluster, yarn_cluster
from loader.cli.demo.shop import create_shop
from loader.resources import cache_folder
from loader.store.hdfs import HdfsRemote
from tests.e2e.loaded import Loaded, assert_loaded_and_followed
from tests.support.secure_hdfs import SecureHdfs, secure_hdfs

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.sweep,
]

REFUSED = 2
"""The exit code of wrong usage."""
TABLES = ("shop.orders", "shop.customers")
OWNER_AND_RENEWER = "bG9hZGVyBmxvYWRl"
"""The part of each token of the user in which the loader's tokens differ from the tokens of Spark."""
PRIVATE = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
EVENTS = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureHdfs]:
    with secure_hdfs(tmp_path_factory.mktemp("hdfs")) as found:
        yield found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, hdfs: SecureHdfs) -> Iterator[YarnCluster]:
    with yarn_cluster(tmp_path_factory.mktemp("yarn"), hdfs.nodes.server, hdfs.realm) as found:
        yield found
        assert wait_until(lambda: not found.containers(), 60)


@pytest.fixture(scope="module")
def source(cluster: YarnCluster, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("shop")
    with start_server("mysql", folder / "server") as server:
        found = Loaded(server, folder / "loader", jars, dict(cluster.environment))
        create_shop(found.address, 3000)
        found.create_user()
        yield found


@pytest.fixture(autouse=True)
def ticket(hdfs: SecureHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a ticket to commands, and so to their drivers."""
    monkeypatch.setenv("KRB5CCNAME", hdfs.ticket())


def configure(source: Loaded, hdfs: SecureHdfs, folder: str, conf: dict[str, str]) -> None:
    root = f"{hdfs.root}/{folder}"
    staging = f'root = "{root}/staging"\nhdfs = {{ webhdfs = "{hdfs.nodes.server.web}" }}'
    source.configure(staging=staging, warehouse=f'path = "{root}/warehouse"')
    java = f"-XX:TieredStopAtLevel=1 {hdfs.realm.java_option}"
    wanted = {
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.executorEnv.LOADER_CACHE": str(cache_folder()),
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.yarn.am.extraJavaOptions": hdfs.realm.java_option,
        "spark.yarn.am.memory": "512m",
        "spark.sql.shuffle.partitions": "4",
        **conf,
    }
    lines = ", ".join(f'"{name}" = "{value}"' for name, value in wanted.items())
    text = source.config.read_text().replace('"shop.*"', ", ".join(f'"{table}"' for table in TABLES))
    text = text.replace('master = "local[2]"', f'master = "yarn"\npython = "{sys.executable}"')
    before, _, after = text.partition("conf = {")
    source.config.write_text(f"{before}conf = {{ {lines} }}{after[after.index('}') + 1 :]}")


def test_tables_are_loaded_and_followed(source: Loaded, hdfs: SecureHdfs, cluster: YarnCluster) -> None:
    events = source.home / "events"
    events.mkdir(parents=True)
    configure(source, hdfs, "private", PRIVATE | EVENTS | {"spark.eventLog.dir": str(events)})
    assert_loaded_and_followed(source, TABLES)
    source.execute("UPDATE shop.customers SET name = 'another'")
    done = source.loader("--verbose", "run")
    assert done.returncode == 0, done.stderr
    findings = {one["name"]: one["severity"] for one in source.json("doctor")}
    assert {findings[name] for name in ("hdfs_token", "store", "staging", "catalog")} == {"ok"}

    assert OWNER_AND_RENEWER in HdfsRemote(f"{hdfs.root}?{hdfs.webhdfs}").delegation_token()
    logs = [path for folder in (cluster.folder / "logs", events) for path in folder.rglob("*") if path.is_file()]
    logs += cluster.folder.glob("*.log")
    assert {"stderr", "NodeManager.log"} <= {path.name for path in logs}
    assert any(b"SparkListenerTaskEnd" in path.read_bytes() for path in logs if events in path.parents)
    assert OWNER_AND_RENEWER not in done.stdout + done.stderr
    assert [path for path in logs if OWNER_AND_RENEWER.encode() in path.read_bytes()] == []


def test_a_driver_with_a_key_table(
    source: Loaded, hdfs: SecureHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"spark.kerberos.keytab": str(hdfs.keytab), "spark.kerberos.principal": "loader"}
    configure(source, hdfs, "keytab", PRIVATE | keys)
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(hdfs.keytab))
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "made-by-the-key-table"))
    assert {table["status"] for table in source.json("initial-load")["tables"]} == {"applied"}


def test_traffic_that_others_can_read_carries_no_token(source: Loaded, hdfs: SecureHdfs) -> None:
    configure(source, hdfs, "open", {"spark.authenticate": "true"})
    (error, *_) = [table["error"] for table in source.json("initial-load", code=REFUSED)["tables"]]
    assert error["what"] == "there is no Kerberos ticket for HDFS"
    assert "spark.network.crypto.enabled" in error["hint"]
