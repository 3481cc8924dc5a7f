"""The short form of the initial load's benchmark: each program does its work, and the figures are ratios."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.initial import load, measure_small_tables, measure_table
from tests.bench.tables import SHAPES, empty_server, fill

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


@pytest.mark.parametrize("table", SHAPES)
def test_a_table_is_measured(table: str) -> None:
    with empty_server() as server:
        figures = measure_table(server, table, 1000, 1)
    assert figures["ratio to spark.read.jdbc"] > 0
    assert figures["ratio of staging to mysqldump"] > 0
    assert figures["ratio of staging to mydumper"] > 0
    assert figures["MB"] > 0


def test_small_tables_are_measured() -> None:
    with empty_server() as server:
        assert measure_small_tables(server, 3)["seconds per table"] > 0


@pytest.mark.parametrize("table", SHAPES)
def test_a_large_load_needs_less_than_a_gigabyte(table: str, tmp_path: Path) -> None:
    """All processes together, with two readers."""
    with empty_server() as server:
        fill(server, table, SHAPES[table], SHAPES[table].rows * 3 // 5)
        assert load(server, table, tmp_path).megabytes < 1000
