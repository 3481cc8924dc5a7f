"""Old names of commands: they work for one release, and warn with the new name."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import UsageError


@pytest.mark.parametrize(("old", "new"), [(["position"], "loader plan")], ids=str)
def test_an_old_name_warns_and_does_what_the_new_one_does(
    old: list[str], new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADER_CONFIG", "/no/such/file.toml")
    done = CliRunner().invoke(app, old)
    assert (
        done.stderr
        == f"warning: loader {' '.join(old)} is now {new}; the old name will be removed in the next release\n"
    )
    assert isinstance(done.exception, UsageError)
    assert done.exception.what == "there is no configuration"


def test_help_does_not_list_old_names() -> None:
    listed = CliRunner().invoke(app, ["--help"]).output
    assert not re.search(r"^  position ", listed, re.MULTILINE)
