"""A real S3 server, which every client in the tests here finds by the environment."""

from __future__ import annotations

from typing import Any

import pytest

from infra.s3server import S3Server
from loader.s3 import open_client


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of it."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return open_client()
