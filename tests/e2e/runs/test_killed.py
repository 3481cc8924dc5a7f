"""SIGKILL before and after each outside effect of a delta run, then a run that is left alone: the tables are equal.

By default some kills follow one another and one clean run ends them all, which is harder and faster. In a sweep
(LOADER_SWEEP=1) it is killed at every point, and a clean run and a comparison follow each kill.
"""

from __future__ import annotations

import pytest

from loader.failpoints import POINTS
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.e2e

_ELSEWHERE = {
    "chunk.before",
    "chunk.after",
    "quarantine.before",
    "quarantine.after",
    "compact.after",
    "expire.after",
}  # no delta that succeeds comes there
_SOME = ("part.after", "manifest.before", "insert.after")
_POINTS = [point for point in POINTS if point not in _ELSEWHERE and (IN_SWEEP or point in _SOME)]


@pytest.mark.timeout(1800)
def test_a_delta_killed_anywhere_is_healed_by_a_run(loaded: Loaded) -> None:
    died = {}
    for number, point in enumerate(_POINTS):
        altered = f"ALTER TABLE shop.inventory ADD extra{number} VARCHAR(9) DEFAULT 'x'"
        loaded.execute(*changes(10 + number), altered)
        done = loaded.loader("run", LOADER_FAILPOINT=point)
        died[point] = done.returncode
        if IN_SWEEP:
            loaded.json("run")
            assert loaded.differences() == NOTHING_DIFFERS, point
    # The process itself dies at its own points; at those of a Spark job it reports an error that a retry can heal.
    assert {point: code in (-9, 3) for point, code in died.items()} == dict.fromkeys(_POINTS, True), died
    loaded.json("run")
    loaded.json("run")
    assert loaded.differences() == NOTHING_DIFFERS
    assert {state["state"] for state in loaded.json("intervals")} == {"applied"}
