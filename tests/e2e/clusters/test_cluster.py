"""The loader on a standalone Spark cluster with two workers, whose executors lack the environment of the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.servers import start_server
from infra.spark_cluster import SparkCluster, spark_cluster
from loader.cli.demo.shop import TABLES, create_shop
from tests.e2e.loaded import Loaded, assert_loaded_and_followed

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


@pytest.fixture
def shop(cluster: SparkCluster, tmp_path: Path, jars: str) -> Iterator[Loaded]:
    """A shop whose jobs run on the cluster. The password is in the environment of the command only."""
    with start_server("mysql", tmp_path / "server") as server:
        found = Loaded(server, tmp_path / "loader", jars, env={"SHOP_PASSWORD": PASSWORD, **cluster.environment})
        found.configure(password="env:SHOP_PASSWORD")
        create_shop(found.address, 3000)
        found.create_user()
        found.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{PASSWORD}'")
        text = found.config.read_text().replace('master = "local[2]"', f'master = "{cluster.master}"')
        found.config.write_text(text)
        yield found


def test_executors_run_a_package(shop: Loaded, cluster: SparkCluster, tmp_path: Path) -> None:
    archive = tmp_path / "loader.tar.gz"
    packed = shop.json("package", str(archive))
    assert packed == {"file": str(archive), "bytes": archive.stat().st_size}
    shop.config.write_text(shop.config.read_text().replace("[spark]", f'[spark]\npackage = "{archive}"'))
    assert {table["status"] for table in shop.json("initial-load")["tables"]} == {"applied"}
    programs = [path for path in cluster.folder.rglob("loader/bin/python") if path.is_file()]
    assert len({program.relative_to(cluster.folder).parts[0] for program in programs}) == 2
    assert list(cluster.folder.rglob("loader/cache")) == []  # every kernel came compiled
    assert {table["status"] for table in shop.json("verify")["tables"]} == {"equal"}


def test_tables_are_loaded_and_followed(shop: Loaded, cluster: SparkCluster) -> None:
    assert_loaded_and_followed(shop, TABLES)
    logs = [path for path in cluster.folder.rglob("*") if path.is_file()]
    assert logs
    assert [path for path in logs if PASSWORD.encode() in path.read_bytes()] == []
