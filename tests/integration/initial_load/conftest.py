"""Both servers, each with a schema for the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.initial_load.source_server import SourceServer
from tests.integration.materialise.conftest import jars, settings  # noqa: F401 - fixtures


@pytest.fixture(params=["mysql", "mariadb"])
def source(request: pytest.FixtureRequest) -> Iterator[SourceServer]:
    """MySQL, then MariaDB."""
    yield from _source(request, request.param)


@pytest.fixture
def mysql(request: pytest.FixtureRequest) -> Iterator[SourceServer]:
    yield from _source(request, "mysql")


@pytest.fixture
def mariadb(request: pytest.FixtureRequest) -> Iterator[SourceServer]:
    yield from _source(request, "mariadb")


def _source(request: pytest.FixtureRequest, kind: str) -> Iterator[SourceServer]:
    made = SourceServer(request.getfixturevalue(f"{kind}_server"))
    yield made
    made.drop()
