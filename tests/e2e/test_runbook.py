"""Every command of the runbook does what it says on a source that stands as it should."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

_RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "runbook.md"


def commands() -> list[str]:
    """The lines of the runbook's shell blocks, in their order, each once."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", _RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return list(dict.fromkeys(line for block in blocks for line in block.splitlines() if line.strip()))


def test_the_commands_of_the_runbook_run(loaded: Loaded) -> None:
    found = commands()
    assert len(found) >= 5
    for number, line in enumerate(found):
        loaded.execute(*changes(300 + number))
        program, *arguments = shlex.split(line, comments=True)
        assert program == "loader", line
        done = loaded.loader(*arguments)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert done.stdout.strip(), line
    loaded.json("run")
    loaded.json("run")  # the first may have been the rest of a plan that a command above made
    assert loaded.differences() == NOTHING_DIFFERS
