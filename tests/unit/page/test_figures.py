"""Numbers as people read them."""

from __future__ import annotations

import pytest

from loader.page import figures
from loader.source.retention import Runway


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"), (0.4, "0 s"), (59.6, "1 min"), (60, "1 min"), (200, "3 min 20 s"), (3600, "1 h"), (3660, "1 h 1 min"),
        (86_399, "23 h 59 min"), (86_400, "1 d"), (190_000, "2 d 4 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert figures.duration(seconds) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (5_000_000_000, "5.0 GB"), (1.2e16, "12,000.0 TB")],
)
def test_sizes(number: int, shown: str) -> None:
    assert figures.size(number) == shown


def test_the_runway() -> None:
    runways = [
        None,
        *(Runway(file="f", hours=hours, rule=rule) for hours, rule in ((0, "gone"), (None, "none"), (1.5, "age"))),
    ]
    assert list(map(figures.runway, runways)) == ["unknown", "already purged", "forever", "1 h 30 min"]
