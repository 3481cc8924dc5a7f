"""The page of commands, from the help texts of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import typer

from loader.cli.app import app

_HEAD = """# Commands

Options that every command takes stand before its name: `loader --json status`. `loader COMMAND --help` prints what is
here. Every command can be run again at any time: work that is done is found and not repeated.

`--source` takes the name of a source in the configuration, or the address of its server or of its log files
(`mysql://host:port`, `file:///path`). It can be left out if the configuration has one source.

| exit code | meaning |
|---|---|
| 0 | Done. |
| 1 | An error. |
| 2 | The command line or the configuration is wrong. Nothing was done. |
| 3 | A retry can help: a server, the network or a disk failed. |
| 4 | The data must be looked at first. `loader doctor`: warnings only. |

This page is generated from the command line itself.
"""


def commands_page() -> str:
    """Return the page as Markdown."""
    root = typer.main.get_command(app)
    return _HEAD + "".join(_entry(path, command) for path, command in _commands(root, "loader"))


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield a command with its path, then those below it; a group without a help text of its own is one too."""
    yield path, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if not below.hidden:
            yield from _commands(below, f"{path} {name}")


def _entry(path: str, command: Any) -> str:
    context = command.context_class(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    text = "Options of every command." if path == "loader" else cleandoc(command.help or "")
    level = "##" if path.count(" ") < 2 else "###"
    anchor = path.replace(" ", "-")
    head = f"\n{level} `{path}` {{ #{anchor} }}\n\n{text}\n\n```text\n{usage}\n```\n"
    rows = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    return head + ("\n| option | meaning |\n|---|---|\n" + "".join(map(_row, rows)) if rows else "")


def _row(record: tuple[str, str]) -> str:
    option, meaning = (text.replace("|", "\\|") for text in record)
    return f"| `{option}` | {meaning} |\n"
