"""Runs tests on each server, with a database per test module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binlog.source import Source


@pytest.fixture(scope="module", params=["mysql", "mariadb", "new_mariadb"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    module = request.module.__name__.rpartition(".")[2]
    made = Source(request.getfixturevalue(f"{request.param}_server"), f"log_{module}")
    yield made
    made.close()
