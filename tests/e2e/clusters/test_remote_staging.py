"""Staging on real S3 and on real HDFS: Spark reads there what it reads on a folder, on one machine and on a cluster.

The warehouse is on the same machine, or beside the staging: by a JDBC catalog on S3, by a hadoop catalog on HDFS.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hdfs import InsecureClient

from infra.hdfs import HdfsServer
from infra.s3server import S3Server, run_s3
from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from loader.jars.resolve import jars_folder
from loader.s3 import open_client
from loader.store.registry import open_store
from tests.contract.conftest import hdfs_user
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.certificates import make_certificates

_LOCK = Path(__file__).resolve().parents[2] / "jars.lock"

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


@dataclass
class Remote:
    """A source with a shop of 3,000 rows and nothing loaded; the addresses of its staging root and its warehouse."""

    loaded: Loaded
    staging: str
    warehouse: str

    def staged(self) -> dict[str, bytes]:
        store = open_store(self.staging)
        return {info.key: store.get(info.key) for info in store.list("shop/")}

    def committed(self) -> list[str]:
        """All metadata files of the warehouse's tables: unchanged when nothing was committed."""
        files = open_store(self.warehouse).list("shop/")
        return [info.key for info in files if info.key.endswith(".metadata.json")]


@pytest.fixture(scope="module")
def both_jars(jars: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the loader's jars and of the catalog's database."""
    folder = tmp_path_factory.mktemp("jars")
    for place in (Path(jars), jars_folder(_LOCK)):
        for jar in place.glob("*.jar"):
            (folder / jar.name).symlink_to(jar)
    return str(folder)


def on_s3(found: Loaded, server: S3Server, name: str, warehouse: str, authority: str = "") -> Remote:
    open_client(endpoint=server.endpoint, tls_ca=authority).create_bucket(Bucket=name)
    root, options = f"s3://{name}/a/staging", f"?endpoint={server.endpoint}&tls_ca={authority}"
    remote = Remote(found, root + options, f"file://{found.home}/warehouse")
    section = ""
    if warehouse == "remote":
        database = f"jdbc:sqlite:{found.home}/catalog.db?busy_timeout=60000&journal_mode=WAL"
        section = f'type = "jdbc"\nuri = "{database}"\nproperties = {{ "jdbc.schema-version" = "V1" }}'
        section += f'\npath = "s3a://{name}/warehouse"'
        remote.warehouse = f"s3://{name}/warehouse{options}"
    staging = f'root = "{root}"\ns3 = {{ endpoint = "{server.endpoint}", tls_ca = "{authority}" }}'
    found.configure(staging=staging, warehouse=section)
    return remote


def on_hdfs(found: Loaded, server: HdfsServer, name: str, warehouse: str) -> Remote:
    # A folder of its own user, closed to the one of the process: Spark must come as the former too.
    owner = InsecureClient(server.web, user=hdfs_user())
    owner.makedirs(f"/{name}", permission="700")
    owner.set_owner(f"/{name}", owner="etl")
    found.env["HADOOP_USER_NAME"] = "nobody"
    root, options = f"{server.address}/{name}", f"?webhdfs={server.web}&user=etl"
    remote = Remote(found, f"{root}/staging{options}", f"file://{found.home}/warehouse")
    section = ""
    if warehouse == "remote":
        section, remote.warehouse = f'path = "{root}/warehouse"', f"{root}/warehouse{options}"
    staging = f'root = "{root}/staging"\nhdfs = {{ webhdfs = "{server.web}", user = "etl" }}'
    found.configure(staging=staging, warehouse=section)
    return remote


WAYS = [("s3", "remote"), ("hdfs", "remote"), ("s3", "local"), ("hdfs", "local"), ("s3-tls", "remote")]
CLUSTER = [
    pytest.param((kind, "remote"), marks=marks, id=kind)
    for kind, marks in (("s3", ()), ("s3-tls", pytest.mark.sweep), ("hdfs", pytest.mark.sweep))
]
TABLES = ("shop.orders", "shop.customers")


@pytest.fixture(scope="module")
def plain(s3_server: S3Server) -> tuple[S3Server, str]:
    return s3_server, ""


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[S3Server, str]]:
    """A server behind TLS, and the file of its private authority."""
    folder = tmp_path_factory.mktemp("s3-tls")
    (folder / "buckets").mkdir()
    made = make_certificates(folder)
    with run_s3(folder / "buckets", made.server) as process:
        yield process.server, str(made.authority)


@pytest.fixture(params=WAYS, ids=[f"{kind}-{warehouse}-warehouse" for kind, warehouse in WAYS])
def remote(
    request: pytest.FixtureRequest, tmp_path: Path, jars: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Remote]:
    kind, warehouse = request.param
    with start_server("mysql", tmp_path / "server") as server:
        if kind.startswith("s3") and warehouse == "remote":
            jars = request.getfixturevalue("both_jars")
        found = Loaded(server, tmp_path / "loader", jars)
        name = f"lake-{random.SystemRandom().randrange(10**12)}"
        if kind.startswith("s3"):
            s3, authority = request.getfixturevalue("encrypted" if kind == "s3-tls" else "plain")
            for variable, value in s3.environment.items():
                monkeypatch.setenv(variable, value)
            monkeypatch.delenv("AWS_ENDPOINT_URL")
            made = on_s3(found, s3, name, warehouse, authority)
        else:
            made = on_hdfs(found, request.getfixturevalue("hdfs_server"), name, warehouse)
        create_shop(found.address, 3000)
        found.create_user()
        yield made


@pytest.mark.sweep
def test_load_change_extract_materialise_compare_each_twice(remote: Remote) -> None:
    source = remote.loaded
    first = source.json("initial-load")
    assert {table["status"] for table in first["tables"]} == {"applied"}
    assert {table["status"] for table in source.json("initial-load")["tables"]} == {"already"}

    source.execute(*changes(1), *changes(2))
    interval = str(source.json("plan")["start_seqno"])
    assert source.json("plan")["new"] is False
    assert source.json("extract", "--interval", interval)["status"] == "staged"
    files = remote.staged()
    assert source.json("extract", "--interval", interval)["status"] == "already"
    assert remote.staged() == files
    merged = source.json("materialise")
    assert {table["status"] for table in merged["tables"]} == {"applied"}
    assert source.differences() == NOTHING_DIFFERS

    files, commits = remote.staged(), remote.committed()
    assert len(commits) > len(NOTHING_DIFFERS)
    again = source.loader("--verbose", "--json", "materialise")
    assert {table["status"] for table in json.loads(again.stdout)["tables"]} == {"already"}
    assert os.environ.get("AWS_SECRET_ACCESS_KEY", "none") not in again.stdout + again.stderr
    assert (remote.staged(), remote.committed()) == (files, commits)
    assert source.loader("doctor").returncode == 0


@pytest.mark.parametrize("remote", CLUSTER, indirect=True)
def test_tasks_of_a_cluster_read_and_write_there(remote: Remote) -> None:
    source = remote.loaded
    text = source.config.read_text().replace('"shop.*"', ", ".join(f'"{table}"' for table in TABLES))
    source.config.write_text(text.replace('master = "local[2]"', 'master = "local-cluster[2,1,1024]"'))
    assert {table["status"] for table in source.json("initial-load")["tables"]} == {"applied"}
    source.execute(*changes(1))
    assert {table["status"] for table in source.json("run")["materialise"]["tables"]} == {"applied"}
    files = [info.key for info in open_store(remote.warehouse).list("shop/") if info.key.endswith(".parquet")]
    of_tasks = [file for file in files if re.search(r"-\d{5}-[0-9a-f]{8}\.parquet$", file)]
    assert {file.split("/data/")[0] for file in of_tasks} == {"shop/orders", "shop/customers"}  # the files of the load
    assert source.differences(TABLES) == dict.fromkeys(TABLES, 0)
