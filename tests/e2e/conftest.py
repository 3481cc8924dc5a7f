"""The loaded shop, and one not loaded yet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.loaded import Loaded


@pytest.fixture(scope="session")
def jars() -> str:
    """The folder of Iceberg's jar."""
    if "LOADER_JARS" in os.environ:
        return os.environ["LOADER_JARS"]
    script = Path(__file__).resolve().parents[2] / "infra" / "jars.py"
    return subprocess.check_output([sys.executable, str(script)], text=True).splitlines()[-1]


@pytest.fixture(scope="session", autouse=True)
def archive(jars: str) -> None:
    """The archive of classes: it takes 30 s once, and some 5 s off each of the many jobs here."""
    subprocess.run([sys.executable, "-m", "loader", "warm", "--jars", jars], check=True)


@contextmanager
def _shop(home: Path, jars: str) -> Iterator[Loaded]:
    with start_server("mysql", home / "server") as server:
        found = Loaded(server, home / "loader", jars)
        found.configure()
        create_shop(found.address, 3000)
        found.create_user()
        yield found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """A server with a shop of 3,000 rows, configured, and nothing loaded."""
    with _shop(tmp_path_factory.mktemp("empty"), jars) as found:
        yield found


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """The same with its initial load done, shared by all: each test leaves it able to go on."""
    with _shop(tmp_path_factory.mktemp("e2e"), jars) as found:
        found.json("initial-load")
        yield found
