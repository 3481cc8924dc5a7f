"""The loaded shop, once per module."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    """A server with a shop of 3,000 rows, configured, and nothing loaded."""
    home = tmp_path_factory.mktemp("e2e")
    with start_server("mysql", home / "server") as server:
        found = Loaded(server, home / "loader", jars)
        found.configure()
        create_shop(found.address, 3000)
        yield found


@pytest.fixture(scope="module")
def loaded(empty: Loaded) -> Loaded:
    """The same with its initial load done."""
    empty.json("initial-load")
    return empty
