"""A whole delta staged on real S3 and on real HDFS: Spark reads there what it reads on a folder, once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hdfs import InsecureClient

from infra.hdfs import HdfsServer
from infra.s3server import S3Server
from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from loader.config import load_config
from loader.s3 import open_client
from loader.store.opening import open_store
from tests.contract.conftest import hdfs_user
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", params=["s3", "hdfs"])
def remote(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """A server with a shop of 3,000 rows, staging elsewhere, and nothing loaded."""
    home = tmp_path_factory.mktemp(request.param)
    with ExitStack() as cleanup:
        found = Loaded(cleanup.enter_context(start_server("mysql", home / "server")), home / "loader", jars)
        name = f"staging-{random.SystemRandom().randrange(10**12)}"
        if request.param == "s3":
            s3: S3Server = request.getfixturevalue("s3_server")
            environment = cleanup.enter_context(pytest.MonkeyPatch.context())
            for variable, value in s3.environment.items():
                environment.setenv(variable, value)
            environment.delenv("AWS_ENDPOINT_URL")
            open_client(endpoint=s3.endpoint).create_bucket(Bucket=name)
            found.configure(staging=f'root = "s3://{name}/a/staging"\ns3 = {{ endpoint = "{s3.endpoint}" }}')
        else:
            hdfs: HdfsServer = request.getfixturevalue("hdfs_server")
            # A folder of its own user, closed to the one of the process: Spark must come as the former too.
            owner = InsecureClient(hdfs.web, user=hdfs_user())
            owner.makedirs(f"/{name}", permission="700")
            owner.set_owner(f"/{name}", owner="etl")
            found.env["HADOOP_USER_NAME"] = "nobody"
            found.configure(
                staging=f'root = "{hdfs.address}/{name}/staging"\nhdfs = {{ webhdfs = "{hdfs.web}", user = "etl" }}'
            )
        create_shop(found.address, 3000)
        yield found


def staged(loaded: Loaded) -> dict[str, bytes]:
    store = open_store(load_config(str(loaded.config)).source().staging_root)
    return {info.key: store.get(info.key) for info in store.list("shop/")}


def test_load_change_extract_materialise_compare_each_twice(remote: Loaded) -> None:
    first = remote.json("initial-load")
    assert {table["status"] for table in first["tables"]} == {"applied"}
    assert {table["status"] for table in remote.json("initial-load")["tables"]} == {"already"}
    assert remote.differences() == NOTHING_DIFFERS

    remote.execute(*changes(1), *changes(2))
    interval = str(remote.json("position")["start_seqno"])
    assert remote.json("position")["new"] is False
    assert remote.json("extract", "--interval", interval)["status"] == "staged"
    files = staged(remote)
    assert remote.json("extract", "--interval", interval)["status"] == "already"
    assert staged(remote) == files
    merged = remote.json("materialise")
    assert {table["status"] for table in merged["tables"]} == {"applied"}
    assert remote.differences() == NOTHING_DIFFERS

    files, snapshots = staged(remote), remote.snapshots()
    again = remote.json("materialise")
    assert {table["status"] for table in again["tables"]} == {"already"}
    assert staged(remote) == files
    assert remote.snapshots() == snapshots
