"""The Spark session of the benchmarks, set up as the loader's jobs are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from loader.spark.settings import SparkSettings
from loader.spark.submit import configuration, environment

_CHECKOUT = Path(__file__).resolve().parents[2]


def jars() -> str:
    """The folder with Iceberg's jar."""
    argv = [sys.executable, str(_CHECKOUT / "infra" / "jars.py")]
    return subprocess.check_output(argv, cwd=_CHECKOUT, text=True).splitlines()[-1]


def spark_session() -> SparkSession:
    """A session on two cores; one and the same for all who ask in a process."""
    settings = SparkSettings(jars=jars(), master="local[2]", conf={"spark.driver.memory": "4g"})
    os.environ.update(environment(settings))
    builder = SparkSession.builder.master(settings.master)
    for name, value in configuration(settings).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
