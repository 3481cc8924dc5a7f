"""Stated sizes are not trusted: such logs are refused or read in pieces, with normal memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.binlog.bombs import CASES, FINE

MIB = 1024  # in KiB
ROOM = 48 * MIB
"""What a process may grow by: blocks of the walk, the output, zstd's window."""


def grown(case: str) -> tuple[int, str]:
    """By how much the peak of memory grew, in KiB, and what came of it."""
    command = [sys.executable, "-m", "tests.unit.binlog.bombs", case]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, cwd=root)
    before, after, what = done.stdout.strip().split("\t")
    return int(after) - int(before), what


@pytest.mark.parametrize("case", [name for name in CASES if name != "nothing"])
def test_sizes_that_lie_are_refused_in_bounded_memory(case: str) -> None:
    room, what = grown(case)
    assert what.split()[:2] in (["BinlogFormatError", "4"], ["UnsupportedError", "4"], ["DataError", "4"]), what
    assert room < ROOM


@pytest.mark.parametrize("case", ["nothing", *FINE])
def test_what_is_true_is_read_in_bounded_memory(case: str) -> None:
    room, what = grown(case)
    assert what == "staged"
    assert room < ROOM
