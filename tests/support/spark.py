"""One Spark for all tests that use one in their own process, and lakes on every kind of catalog."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from loader.jars.resolve import jars_folder
from loader.materialise.spec import CatalogSettings
from loader.spark.settings import SparkSettings
from loader.spark.submit import configuration, environment
from tests.integration.materialise.lake import Lake
from tests.support.catalogs import CatalogServer, sqlite_settings

NewLake = Callable[..., Lake]

# Spark's driver is so much code that the optimising compiler takes a third of the processors, for hardly any effect.
_FIRST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=1 -XX:ReservedCodeCacheSize=240m"
_FOR_MANY_SMALL_JOBS = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.codegen.cache.maxEntries": "5000",  # instead of 100: the tests have many plans, again and again
    "spark.sql.ui.explainMode": "simple",  # nobody reads the plans, which take a tenth of the driver's time
    # Spark searches all that it keeps for its pages whenever it forgets something of it.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "50",
}
_TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def jars() -> str:
    """The folder with the loader's jars."""
    if folder := os.environ.get("LOADER_JARS"):
        return folder
    argv = [sys.executable, "infra/jars.py"]
    variables = {**os.environ, "PYTHONPATH": str(_TESTS.parent)}
    done = subprocess.run(argv, cwd=_TESTS.parent, env=variables, check=True, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="session")
def settings(jars: str) -> SparkSettings:
    conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": _FIRST_COMPILER}
    return SparkSettings(jars=jars, master="local[2]", conf=conf)


@pytest.fixture(scope="session")
def spark(settings: SparkSettings) -> Iterator[SparkSession]:
    """With the drivers of the databases of JDBC catalogs."""
    os.environ.update(environment(settings))
    builder = SparkSession.builder.master(settings.master)
    for name, value in (configuration(settings) | _FOR_MANY_SMALL_JOBS).items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        # Behind all other jars, as the archive of classes is for a class path that begins with those.
        patch.setenv("SPARK_DIST_CLASSPATH", f"{jars_folder(_TESTS / 'jars.lock')}/*")
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)


@pytest.fixture
def new_lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> NewLake:
    """A function from a kind of catalog to a lake with an empty one; a server is started by who first asks for it.

    With a port, the lake goes to the server by way of that port.
    """

    def made(kind: str, port: int = 0) -> Lake:
        if kind == "hadoop":
            return Lake(spark, tmp_path)
        if kind == "hdfs":
            address = f"{request.getfixturevalue('hdfs_server').address}/{tmp_path.name}"
            return Lake(spark, tmp_path, CatalogSettings(type="hadoop", warehouse=address))
        if kind == "sqlite":
            return Lake(spark, tmp_path, sqlite_settings(tmp_path))
        server: CatalogServer = request.getfixturevalue(f"{kind}_catalog")
        lake = Lake(spark, tmp_path, server.settings(tmp_path, port))
        if kind == "hive":  # which has one catalog, and in it what other tests left
            _drop_all(lake)
        return lake

    return made


def _drop_all(lake: Lake) -> None:
    catalog = lake.catalog.name
    for (namespace,) in lake.sql(f"SHOW NAMESPACES IN {catalog}"):
        if namespace != "default":
            for row in lake.sql(f"SHOW TABLES IN {catalog}.{namespace}"):
                lake.sql(f"DROP TABLE {catalog}.{namespace}.{row.tableName}")
            lake.sql(f"DROP NAMESPACE {catalog}.{namespace}")
