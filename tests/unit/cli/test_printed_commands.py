"""Printed commands name the source if the configuration has several."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from loader.cli.app import app
from loader.cli.output import Output
from loader.cli.printed_commands import _NEED_SOURCE, with_source
from loader.cli.session import Session
from loader.errors import DataError


def _with_option(command: typer.core.TyperGroup, path: str = "") -> Iterator[str]:
    for name, one in command.commands.items():
        if isinstance(one, typer.core.TyperGroup):
            yield from _with_option(one, f"{path}{name} ")
        elif not one.hidden and any("--source" in parameter.opts for parameter in one.params):
            yield f"{path}{name}"


def test_all_commands_with_the_option_are_known() -> None:
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    assert sorted(_with_option(command)) == sorted(_NEED_SOURCE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loader initial-load --table a.b --again", "loader initial-load --source crm --table a.b --again"),
        ("fix it; then: loader run; or loader status", "fix it; then: loader run --source crm; or loader status --source crm"),
        ("loader --json schema show a.b --at f:4", "loader --json schema show --source crm a.b --at f:4"),
        ("loader staged restore f:4", "loader staged restore --source crm f:4"),
        ("loader run --source shop --until f:4", "loader run --source shop --until f:4"),
        ("loader follow --help; loader jars; the loader runs; loader init", "loader follow --help; loader jars; the loader runs; loader init"),
    ],
)  # fmt: skip
def test_commands_name_the_source(text: str, expected: str) -> None:
    assert with_source(text, "crm") == expected
    assert with_source(text, "") == text


def test_odd_names_are_quoted() -> None:
    assert with_source("loader run", "a b") == "loader run --source 'a b'"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    text = f'[staging]\nroot = "file://{tmp_path}/staging"\n[warehouse]\npath = "/w"\n[spark]\njars = "/jars"\n'
    for name in ("shop", "crm"):
        text += f'[sources.{name}]\nhost = "127.0.0.1"\nport = 1\nuser = "u"\ntables.include = ["{name}.*"]\n'
    file = tmp_path / "loader.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("as_json", [False, True])
def test_errors_of_one_of_several_sources_name_it(
    config: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    output = Output(as_json)
    Session(str(config), output).settings("crm")
    output.error(DataError("a value is wrong", hint="loader initial-load --table crm.t --again", table="crm.t"))
    printed = capsys.readouterr()
    hint = json.loads(printed.out)["hint"] if as_json else printed.err.partition("what to do: ")[2].strip()
    assert hint == "loader initial-load --source crm --table crm.t --again"


def test_errors_of_the_only_source_do_not_name_it(config: Path) -> None:
    config.write_text(config.read_text(encoding="utf-8").partition("[sources.crm]")[0], encoding="utf-8")
    output = Output(as_json=False)
    Session(str(config), output).settings("")
    assert output.text_of(DataError("x", hint="loader run")) == "x\n  what to do: loader run"


def test_the_process_prints_errors_that_name_the_source(config: Path) -> None:

    argv = [sys.executable, "-m", "loader", "--config", str(config), "release", "crm.t", "--source", "crm"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "what to do: loader status --source crm" in done.stderr
