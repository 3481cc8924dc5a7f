"""Options of `loader extract` that exclude each other."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import UsageError


@pytest.mark.parametrize(
    "options",
    [("--again", "1", "--restore", "2"), ("--interval", "3", "--again", "1"), ("--interval", "1", "--restore", "1")],
)
def test_only_one_thing_is_done(options: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["extract", *options])
    assert isinstance(done.exception, UsageError)
    assert "three different things" in done.exception.what
