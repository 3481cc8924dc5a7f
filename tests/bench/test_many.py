"""The short form of the benchmark of many tables and sources: every command does its work."""

from __future__ import annotations

import pytest

from tests.bench.many import measure_sources, measure_tables

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_commands_are_measured() -> None:
    costs = measure_tables(3) | measure_sources(2)
    assert all(cost.seconds > 0 and cost.megabytes > 0 for cost in costs.values())
