"""One Spark for all tests that use one in their own process, and lakes on every kind of catalog."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.postgres import PASSWORD, start_postgres
from loader.jars.resolve import jars_folder
from loader.materialise.spec import CatalogSettings
from loader.spark.submit import SparkSettings, configuration, environment
from tests.integration.materialise.lake import Lake

NewLake = Callable[[str], Lake]

CATALOGS = ["hadoop", "sqlite", "postgresql"]
if "LOADER_SWEEP" in os.environ:
    CATALOGS.append("hdfs")

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
_SQLITE = "busy_timeout=60000&journal_mode=WAL"


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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The JDBC address of a server for the whole session; each lake has a catalog of its own name in it."""
    with start_postgres() as uri:
        yield uri


@pytest.fixture
def new_lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> NewLake:
    """A function from a kind of catalog to a lake with an empty one; a server is started by who first asks for it."""

    def made(kind: str) -> Lake:
        if kind == "hdfs":
            address = f"{request.getfixturevalue('hdfs_server').address}/{tmp_path.name}"
            return Lake(spark, tmp_path, CatalogSettings(type="hadoop", warehouse=address))
        if kind == "hadoop":
            return Lake(spark, tmp_path)
        uri = (
            f"jdbc:sqlite:{tmp_path}/catalog.db?{_SQLITE}" if kind == "sqlite" else request.getfixturevalue("postgres")
        )
        password = tmp_path / "password"
        password.write_text(f"{PASSWORD}\n")
        # The name of the catalog is in every row of its database, and so are the tables of other tests.
        catalog = CatalogSettings(
            name=f"lake_{tmp_path.name}",
            type="jdbc",
            uri=uri,
            warehouse=f"file://{tmp_path}/warehouse",
            properties={"jdbc.user": "postgres", "jdbc.schema-version": "V1"},
            secrets={"jdbc.password": f"file:{password}"},
        )
        return Lake(spark, tmp_path, catalog)

    return made
