"""Estimates of the time of an initial load."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from loader.pipeline.reports.load_duration import chunks_per_second, estimate_seconds

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "rate"),
    [
        ([], None),
        ([0, 1, 2], None),
        ([0, 1, 2, 3], 1.0),
        ([2, 0, 3, 1], 1.0),
        ([0, 0, 2, 2, 4, 4], 1.25),  # two readers that end together
        ([0, 1, 2, 3, 4, 3600, 3601, 3602, 3603], 1.0),  # stopped for an hour
        ([5, 5, 5, 5], None),
    ],
)
def test_the_rate_of_staged_chunks(seconds: list[float], rate: float | None) -> None:
    assert chunks_per_second([_BEGAN + timedelta(seconds=one) for one in seconds]) == rate


def test_the_seconds_of_a_table() -> None:
    assert estimate_seconds(0, None) == 0.1
    assert estimate_seconds(1000, 100) == 10.1
    assert estimate_seconds(1001, 100) == 10.2
