"""The generated pages are complete, and the written ones name what exists."""

from __future__ import annotations

import ast
import re
import tomllib

import typer

from infra.pages.commands import commands_page
from infra.pages.configuration import MEANINGS, configuration_page, keys
from loader.cli.app import app
from loader.dag_settings import TimeLimits
from tests.docs.pages import ROOT

_ERRORS = ROOT / "docs" / "reference" / "errors.md"


def test_every_key_of_the_configuration_has_a_meaning_and_no_other() -> None:
    meanings = tomllib.loads(MEANINGS.read_text(encoding="utf-8"))
    assert {key.path for key in keys()} == set(meanings)
    assert all(text.strip() for text in meanings.values())


def test_the_page_of_the_configuration_shows_types_limits_and_defaults() -> None:
    page = configuration_page()
    entry = "### `sources.NAME.read_timeout_seconds` { #sources.NAME.read_timeout_seconds }\n\nNumber · at least 1 · Default: `600`\n"
    assert entry in page
    assert "### `staging.root` { #staging.root }\n\nString · **Required**\n" in page
    assert 'One of `"mirror"`, `"soft_delete"`, `"history"` · Default: `"mirror"`' in page
    assert page.count("\n### ") == sum(not key.table for key in keys())


def test_the_page_of_commands_has_every_command_and_option() -> None:
    page = commands_page()
    root = typer.main.get_command(app)
    shown = {name: command for name, command in root.commands.items() if not command.hidden}  # type: ignore[attr-defined]
    assert len(shown) > 20
    for name, command in shown.items():
        assert f"\n## `loader {name}` {{ #loader-{name} }}\n" in page
        for parameter in command.params:
            options = [] if getattr(parameter, "hidden", False) else parameter.opts
            assert all(option in page for option in options if option.startswith("--"))
    assert "| `--older-than AGE` | 30d or 12h" in page


def test_the_errors_of_the_page_are_those_of_the_code() -> None:
    quoted = re.findall(r'^"(.+)"$', _ERRORS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(quoted) > 30
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "loader").rglob("*.py")]
    texts = [
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [quote for quote in quoted if not any(quote in text for text in texts)] == []


def test_every_error_of_the_page_has_an_anchor_of_its_own() -> None:
    text = _ERRORS.read_text(encoding="utf-8")
    anchors = re.findall(r"^### .+ \{ #([a-z-]+) \}$", text, re.MULTILINE)
    assert len(anchors) == len(set(anchors)) == len(re.findall(r"^### ", text, re.MULTILINE))


_DAGS = [file for file in (ROOT / "loader" / "airflow" / "dags").glob("*.py") if "with DAG(" in file.read_text()]


def test_the_page_of_dags_has_each_with_its_time_limit() -> None:
    page = (ROOT / "docs" / "reference" / "dags.md").read_text(encoding="utf-8")
    hours = TimeLimits().model_dump()
    assert set(hours) == {file.stem for file in _DAGS}
    for name, limit in hours.items():
        assert re.search(rf"^\| `SOURCE.{name}` \| [^|]+ \| {limit:g} hours \|", page, re.MULTILINE), name


def test_every_environment_variable_of_the_page_is_one_of_the_code() -> None:
    named = re.findall(r"^\| `(LOADER_\w+)` \|", configuration_page(), re.MULTILINE)
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "loader").rglob("*.py"))
    assert len(named) == 4
    assert [name for name in named if f'"{name}"' not in code] == []
