"""The cure that lets a table lack the rows of a transaction, followed as it is printed, until all other rows are staged."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.chaos.access.command import Command, Ended
from tests.chaos.cures.commands import lines_with

_MOST = 100
"""Transactions of one interval that are skipped, one after the other."""


def is_chosen(error: dict[str, Any]) -> bool:
    """Whether this cure is followed and not the first one: half of the errors that offer it, by their positions."""
    return bool(lines_with("loader skip", error)) and bool(re.search(r"[13579]$", str(error["where"]["position"])))


def skip_rows(command: Command, error: dict[str, Any], say: Callable[[str], None]) -> str:
    """Skip what the error names, stage the other rows, and release the table. Then load it again: it lacks rows now.

    Returns:
        What does not work; empty if everything does.
    """
    (skip, *_), (stage, *_) = lines_with("loader skip", error), lines_with("loader extract", error)
    for _ in range(_MOST):
        line, done = _run((skip, stage), command, say)
        more = lines_with("loader skip", {"hint": done.stderr})
        if not done.code or not more or more[0] == skip:
            break
        skip = more[0]
    if done.code:
        return f"{line}\n{done.stdout}\n{done.stderr}"
    for line in (*lines_with("loader release", error), "loader run", *lines_with("loader initial-load", error)):
        done = command.shell(line)
        say(f"  $ {line} -> {done.code}")
        if done.code not in {0, 3, 4} or "Traceback (most recent call last)" in done.stderr:
            return f"{line}\n{done.stdout}\n{done.stderr}"
    return ""


def _run(lines: Sequence[str], command: Command, say: Callable[[str], None]) -> tuple[str, Ended]:
    """Run commands until one fails; return the last one and how it ended."""
    for line in lines:
        done = command.shell(line)
        say(f"  $ {line} -> {done.code}")
        if done.code:
            break
    return line, done
