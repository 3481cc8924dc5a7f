"""A real S3 server, which every client in the tests here finds by the environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.s3server import S3Server, start_s3
from loader.s3 import open_client


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    folder: Path = tmp_path_factory.mktemp("s3") / "buckets"
    folder.mkdir()
    with start_s3(folder) as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of it."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return open_client()
