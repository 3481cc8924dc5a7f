"""The size of the blocks in which a range is read changes nothing, also for transactions that are longer."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from loader.extract import blocks
from loader.extract.span import whole_segment
from tests.unit.binlog.builder import LogBuilder
from tests.unit.extract.intervals import FILE, extracted, plan_of
from tests.unit.extract.test_ranges import built

_STEPS: list[object] = [
    [(0, 3, 100), (1, 5, 0), (2, 1, 300)],
    "CREATE TABLE shop.x (a INT)",
    [(0, 1, 20)],
    [(0, 12, 400), (0, 12, 400), (1, 2, 0), (0, 9, 399), (2, 2, 2)],
    "padding",
    [(1, 1, 0)],
]


def log_of() -> bytes:
    log: LogBuilder = built(_STEPS)
    return bytes(log.data)


@pytest.mark.parametrize("size", [19, 64, 700, 5_000, 100_000])
def test_the_size_of_blocks_changes_nothing(size: int, tmp_path: Path) -> None:
    log = log_of()
    plan = plan_of(log, include=["shop.*"], part_bytes=4096)
    whole = whole_segment(FILE, 1, 4, len(log), plan.part_bytes)
    expected = extracted(log, plan, tmp_path / "default", [whole])
    assert len(expected.files) > 3
    with patch.object(blocks, "_BLOCK", size):
        found = extracted(log, plan, tmp_path / "small", [whole])
    assert found.files == expected.files
    assert found.manifest == expected.manifest
