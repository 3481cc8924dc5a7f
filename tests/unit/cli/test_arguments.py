"""Options that are misplaced, and names that are incomplete."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import UsageError


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["status", "--json"], "loader --json status ..."),
        (["schema", "show", "a.b", "--config", "x"], "loader --config FILE schema show ..."),
        (["run", "-v"], "loader -v run ..."),
    ],
)
def test_an_option_of_the_loader_after_the_command_says_where_it_belongs(arguments: list[str], advice: str) -> None:
    done = CliRunner().invoke(app, arguments, prog_name="loader")
    assert done.exit_code == 2
    assert f"it belongs before the command: {advice}" in " ".join(done.output.split())


def test_an_unknown_option_is_only_unknown() -> None:
    done = CliRunner().invoke(app, ["status", "--jsn"], prog_name="loader")
    assert done.exit_code == 2
    assert "belongs" not in done.output


@pytest.mark.parametrize("name", ["orders", "shop.", ".orders"])
@pytest.mark.parametrize("command", [["initial-load"], ["verify"], ["maintain"], ["replay", "--from", "begin"]])
def test_a_table_needs_its_schema(command: list[str], name: str) -> None:
    done = CliRunner().invoke(app, [*command, "--table", name])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == (
        f"'{name}' is not the name of a table (key --table)\n  what to do: write it like shop.orders"
    )
