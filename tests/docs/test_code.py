"""Commands, configurations and programs in the pages are valid. tests/e2e runs the commands of the runbook."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from loader.cli.app import app
from loader.config.file import parse_config
from tests.docs.pages import Piece, blocks, spans

_END = re.compile(r"^(>|\||&&|;)")  # of the loader's arguments, in a line of a shell
_PLACEHOLDERS = {"INTERVAL": "54000000000004", "SEQNO": "54000000000004"}
_LEAST = """
staging.root = "file:///data/staging"
warehouse.path = "/data/warehouse"
spark.jars = "/opt/loader/jars"
sources.shop = { host = "db.example.org", user = "loader", tables = { include = ["shop.*"] } }
"""

COMMANDS = [
    Piece(f"{block.place}, {line.strip()}", line)
    for block in blocks("sh")
    for line in block.text.splitlines()
    if line.strip().startswith("loader ")
]
MENTIONED = [span for span in spans() if re.match(r"loader [a-z-]", span.text)]
CONFIGURATIONS = list(blocks("toml"))
PROGRAMS = list(blocks("python"))


def test_the_pages_have_code() -> None:
    assert (len(COMMANDS), len(MENTIONED), len(CONFIGURATIONS), len(PROGRAMS)) > (30, 50, 15, 4)


@pytest.mark.parametrize("piece", COMMANDS, ids=lambda piece: piece.place)
def test_a_command_line_is_one_that_the_command_takes(piece: Piece) -> None:
    assert not parse(arguments(piece.text)).hidden


@pytest.mark.parametrize("piece", MENTIONED, ids=lambda piece: piece.place)
def test_a_command_in_a_sentence_exists_with_its_options(piece: Piece) -> None:
    try:
        assert not parse(arguments(piece.text)).hidden or piece.place.startswith("CHANGELOG")
    except Exception as error:
        if not re.match(r"Missing (option|argument|parameter)|Option '.*' requires an argument", str(error)):
            raise


@pytest.mark.parametrize("line", ["loader nothing", "loader run --agian", "loader replay", "loader extract --again"])
def test_a_wrong_command_line_is_found(line: str) -> None:
    with pytest.raises(Exception, match=r"No such|Missing|requires an argument"):
        parse(arguments(line))


@pytest.mark.parametrize("piece", CONFIGURATIONS, ids=lambda piece: piece.place)
def test_a_configuration_is_valid_by_itself_or_as_a_part(piece: Piece) -> None:
    parse_config(laid_over(tomllib.loads(_LEAST), tomllib.loads(piece.text)), Path("loader.toml"))


@pytest.mark.parametrize("piece", PROGRAMS, ids=lambda piece: piece.place)
def test_a_program_compiles(piece: Piece) -> None:
    compile(piece.text, piece.place, "exec")


def arguments(line: str) -> list[str]:
    """Return what a line of a shell passes to the loader, with values in place of words that stand for them."""
    words = shlex.split(line, comments=True)[1:]
    end = next((number for number, word in enumerate(words) if _END.match(word)), len(words))
    return [_PLACEHOLDERS.get(word, word) for word in words[:end]]


def parse(rest: list[str]) -> Any:
    """Let the command line parse the arguments, without running anything, and return the command that they name.

    Raises:
        ClickException: there is no such command or option, or a value is wrong or missing.
    """
    command, context, name = root(), None, "loader"
    while hasattr(command, "commands") and rest:
        context = command.make_context(name, rest, parent=context)
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    if not hasattr(command, "commands"):
        command.make_context(name, rest, parent=context)
    return command


@cache
def root() -> Any:
    """Return the command line, whose commands ask nothing."""
    command: Any = typer.main.get_command(app)
    for parameter in command.commands["init"].params:
        parameter.prompt = None
    return command


def laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return the two merged, tables inside tables as well."""
    return below | {
        name: laid_over(below[name], value) if isinstance(value, dict) and isinstance(below.get(name), dict) else value
        for name, value in above.items()
    }
