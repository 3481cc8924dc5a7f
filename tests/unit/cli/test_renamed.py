"""Old names of commands: they work for one release, and warn with the new name."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import UsageError


@pytest.mark.parametrize(
    ("arguments", "old", "new"),
    [
        (["position"], "loader position", "loader plan"),
        (["extract", "--again", "54000000000004"], "loader extract --again", "loader staged compare"),
        (["extract", "--restore", "54000000000004"], "loader extract --restore", "loader staged restore"),
    ],
    ids=["position", "again", "restore"],
)
def test_an_old_name_warns_and_does_what_the_new_one_does(
    arguments: list[str], old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADER_CONFIG", "/no/such/file.toml")
    done = CliRunner().invoke(app, arguments)
    assert done.stderr == f"warning: {old} is now {new}; the old name will be removed in the next release\n"
    assert isinstance(done.exception, UsageError)
    assert done.exception.what == "there is no configuration"


def test_help_does_not_list_old_names() -> None:
    listed = CliRunner().invoke(app, ["--help"]).output
    assert not re.search(r"^  position ", listed, re.MULTILINE)
    assert "--again" not in CliRunner().invoke(app, ["extract", "--help"]).output
