"""The number of rows of a chunk, by the statistics of the table."""

from __future__ import annotations

import pytest

from loader.initial_load.chunks import suggest_rows
from loader.source.table_sizes import TableSize


@pytest.mark.parametrize(
    ("size", "rows"),
    [
        (TableSize(0, 0), 100_000),
        (TableSize(999, 16384 * 999), 100_000),  # statistics of a table that was small
        (TableSize(5_000_000, 5_000_000 * 128), 262_144),
        (TableSize(100_000_000, 100_000_000 * 20), 1_000_000),
        (TableSize(60_000, 60_000 * 100_000), 1000),
        (TableSize(5000, 0), 1_000_000),
    ],
)
def test_rows_of_a_chunk(size: TableSize, rows: int) -> None:
    assert suggest_rows(size) == rows
