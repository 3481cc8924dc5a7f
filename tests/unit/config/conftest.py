"""Fixtures of the tests of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "loader.toml"
