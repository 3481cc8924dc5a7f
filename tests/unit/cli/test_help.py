"""What the help texts and the commands about the configuration say."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from loader.cli.app import app
from loader.config.file import load_config
from loader.errors import UsageError

_CONFIG = """
[staging]
root = "file:///s"
keep = "30d"
[warehouse]
path = "/w"
[spark]
jars = "j"
[sources.shop]
host = "h"
user = "u"
tables = { include = ["shop.*"] }
rules = [{ tables = ["shop.log"], mode = "history" }]
"""


def _commands(command: object = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    found = command or typer.main.get_command(app)
    yield path
    for name, child in getattr(found, "commands", {}).items():
        yield from _commands(child, (*path, name))


@pytest.mark.parametrize("path", list(_commands()), ids=" ".join)
def test_help_is_for_people(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*path, "-h"])
    assert done.exit_code == 0
    assert not re.search(r"<(str|int|float|path|bool|list)|list\[|default: 0|default: \]", done.output), done.output


def test_a_configuration_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    file.write_text(_CONFIG)
    done = CliRunner().invoke(app, ["--config", str(file), "config", "check"])
    assert (done.exit_code, done.output.replace("\n", "")) == (0, f"{file} is valid: sources shop")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("root =", "rot =", "staging.rot: there is no such key, did you mean root?"),
        ("user =", "usr =", "sources.shop.usr: there is no such key, did you mean user?"),
        ("mode =", "mod =", "sources.shop.rules.0.mod: there is no such key, did you mean mode?"),
        ("include =", "includes =", "sources.shop.tables.includes: there is no such key, did you mean include?"),
        ("[spark]", "[zzz]", "zzz: there is no such key"),
    ],
)
def test_a_key_that_is_mistyped_is_told(right: str, wrong: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "loader.toml"
    file.write_text(_CONFIG.replace(right, wrong, 1))
    with pytest.raises(UsageError) as caught:
        load_config(str(file))
    assert said in f"{caught.value.why};"


def test_the_schema_takes_what_the_loader_takes(tmp_path: Path) -> None:
    schema = json.loads(CliRunner().invoke(app, ["config", "schema"]).output)
    jsonschema.validate(tomllib.loads(_CONFIG), schema)
    for right, wrong in (("user =", "usr ="), ('"30d"', '"a month"'), ('"history"', '"all"')):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(_CONFIG.replace(right, wrong, 1)), schema)
