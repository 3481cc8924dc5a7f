"""One seed for two minutes, or many for an hour in a sweep: whatever is written, the warehouse ends up equal."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.chaos.__main__ import attempt
from tests.chaos.scenario import scenario

pytestmark = pytest.mark.e2e

_SWEEP = "LOADER_SWEEP" in os.environ
_MINUTES = 60 if _SWEEP else 2
_SEED = int(os.environ.get("LOADER_CHAOS_SEED", "1"))


@pytest.mark.timeout(_MINUTES * 60 + 1800)
def test_both_sides_are_equal_whatever_happens(tmp_path: Path) -> None:
    deadline, seed = time.monotonic() + _MINUTES * 60, _SEED
    while time.monotonic() < deadline:
        assert attempt(scenario(seed), deadline, keep=tmp_path, reduce_seconds=_MINUTES * 60)
        seed += 1
