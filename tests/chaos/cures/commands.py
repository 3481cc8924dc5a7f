"""The cures that errors print, found in their hints and run exactly as printed."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from typing import Any

_END = re.compile(r"; | \(|, or |, then |: |, and |\. |, which |$")


def commands(error: dict[str, Any]) -> list[str]:
    """Return the `loader` commands in the hint of an error that bring its table to what the server has, in their order."""
    return [line for line in _lines(error) if not line.startswith("loader skip")]


def lines_with(beginning: str, error: dict[str, Any]) -> list[str]:
    """Return the commands in the hint of an error that begin with these words."""
    return [line for line in _lines(error) if line.startswith(beginning)]


def _lines(error: dict[str, Any]) -> list[str]:
    hint = str(error["hint"])
    found = []
    for start in re.finditer(r"(?<![\w/-])loader (?=[a-z-]+)", hint):
        rest = hint[start.start() :]
        end = _END.search(rest)
        line = rest[: end.start() if end else len(rest)].strip()
        if _runnable(line):
            found.append(line)
    return found


def _runnable(line: str) -> bool:
    """Whether a line is a whole command: one that the program has, without words that a person must fill in."""
    known = (
        r"loader (--json )?(initial-load|release|extract|materialise|run|replay|maintain|purge|position|schema|skip)\b"
    )
    return bool(re.match(known, line)) and not re.search(r"\b(FILE|POS|NAME|INTERVAL|SCHEMA\.TABLE)\b", line)


def asks_to_run_again(error: dict[str, Any]) -> bool:
    """Whether the cure is another run of the same command."""
    return bool(error.get("retryable")) or "run again" in str(error["hint"])


def is_gone(printed: str) -> bool:
    """Whether a load, with `--json` or without, finds no such table on the server, and says to read the log further."""
    return (
        "the source has no such captured table" in printed and "dropped or renamed on the server: loader run" in printed
    )


def must_be_excluded(printed: str) -> bool:
    """Whether an error tells to leave the table out: its foreign keys change rows that MariaDB does not log."""
    return "its foreign keys CASCADE or SET NULL" in printed and "tables.exclude" in printed


def named_tables(line: str) -> list[str]:
    """Return the tables that a command names, without their database."""
    words = shlex.split(line)
    return [name.partition(".")[2] for option, name in pairwise(words) if option == "--table"]
