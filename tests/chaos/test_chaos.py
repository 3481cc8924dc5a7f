"""One seed with one writer, or many with faults for an hour in a sweep: the warehouse ends up equal."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import randrange

import pytest

from infra.servers import Kind
from tests.chaos.__main__ import attempt
from tests.chaos.scenario import scenario

pytestmark = pytest.mark.e2e

_SEED = int(os.environ.get("LOADER_CHAOS_SEED", "0")) or randrange(10**6)
"""Of the sweep. Each seed is printed."""


@pytest.mark.parametrize(("kind", "seed"), [("mysql", 1784), ("mariadb", 2486)])
def test_one_seed_ends_up_equal(kind: Kind, seed: int, tmp_path: Path) -> None:
    """On MySQL a replica takes over. On MariaDB, whose log is compressed, the server dies during a load."""
    chosen = scenario(seed, kind, writers=1)
    assert attempt(chosen, time.monotonic() + 120, rounds=1, keep=tmp_path, reduce_seconds=60)


@pytest.mark.sweep
@pytest.mark.timeout(2 * 3600)
def test_both_sides_are_equal_whatever_happens(tmp_path: Path) -> None:
    deadline, seed = time.monotonic() + 3600, _SEED
    while time.monotonic() < deadline:
        assert attempt(scenario(seed), deadline, keep=tmp_path)
        seed += 1
