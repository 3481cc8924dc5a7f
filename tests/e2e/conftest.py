"""The loaded shop, and one not loaded yet."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.loaded import Loaded
from tests.support.spark import jars, settings, spark

__all__ = ["jars", "settings", "spark"]


@pytest.fixture(scope="session", autouse=True)
def archive(jars: str) -> None:
    """The archive of classes: it takes 30 s once, and some 5 s off each of the many jobs here."""
    subprocess.run([sys.executable, "-m", "loader", "warm", "--jars", jars], check=True)


@contextmanager
def _shop(home: Path, jars: str, spark: Callable[[], SparkSession]) -> Iterator[Loaded]:
    with start_server("mysql", home / "server") as server:
        found = Loaded(server, home / "loader", jars, spark=spark)
        found.configure()
        create_shop(found.address, 3000)
        found.create_user()
        yield found


@pytest.fixture(scope="module")
def empty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """A server with a shop of 3,000 rows, configured, and nothing loaded."""
    with _shop(tmp_path_factory.mktemp("empty"), jars, lambda: request.getfixturevalue("spark")) as found:
        yield found


@pytest.fixture(scope="session")
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """The same with its initial load done, shared by all: each test leaves it able to go on."""
    with _shop(tmp_path_factory.mktemp("e2e"), jars, lambda: request.getfixturevalue("spark")) as found:
        found.json("initial-load")
        yield found
