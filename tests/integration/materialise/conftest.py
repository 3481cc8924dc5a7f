"""One Spark for all tests here, and a fresh staging root and warehouse for each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from loader.submit import SparkSettings, configuration, environment
from tests.integration.materialise.lake import Lake


@pytest.fixture(scope="session")
def jars() -> str:
    """The folder with the Iceberg jar."""
    if folder := os.environ.get("LOADER_JARS"):
        return folder
    checkout = Path(__file__).resolve().parents[3]
    argv = [sys.executable, "infra/jars.py"]
    variables = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(argv, cwd=checkout, env=variables, check=True, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="session")
def settings(jars: str) -> SparkSettings:
    return SparkSettings(jars=jars, master="local[2]", conf={"spark.driver.memory": "1g"})


@pytest.fixture(scope="session")
def spark(settings: SparkSettings) -> Iterator[SparkSession]:
    os.environ.update(environment(settings))
    builder = SparkSession.builder.master(settings.master)
    for name, value in configuration(settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)
