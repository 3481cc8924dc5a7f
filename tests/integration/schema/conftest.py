"""Runs tests on each server, with a database per test module; the sweep adds a newer MariaDB."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.integration.binlog.source import Source

SERVERS = ["mysql", "mariadb", *(["new_mariadb"] if "LOADER_FUZZ_SECONDS" in os.environ else [])]


@pytest.fixture(scope="module", params=SERVERS)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    module = request.module.__name__.rpartition(".")[2]
    made = Source(request.getfixturevalue(f"{request.param}_server"), f"schema_{module}")
    yield made
    made.close()
