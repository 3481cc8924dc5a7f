"""The age of the oldest event of the log that is not applied."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from loader.pipeline import unapplied_seconds
from tests.unit.binlog.builder import SECONDS, LogBuilder
from tests.unit.pipeline.site import ORDERS, settings_of
from tests.unit.pipeline.test_gauges import LAG


def test_a_quiet_time_before_the_event_does_not_count(tmp_path: Path) -> None:
    """The newest applied commit is an hour older than the event after it."""
    log, following = LogBuilder(), LogBuilder()
    log.insert(ORDERS, (1, "a"), number=1)
    applied = log.end
    log.gtid(seconds=SECONDS + 3600)
    (tmp_path / "binlog.000001").write_bytes(log.data)
    (tmp_path / "binlog.000002").write_bytes(following.data)
    settings = settings_of(tmp_path)
    now = time.time()

    def seconds(position: int) -> float:
        found = unapplied_seconds(settings, LAG.model_copy(update={"applied": f"binlog.000001:{position}"}))
        assert found is not None
        return found

    assert seconds(applied) == pytest.approx(now - SECONDS - 3600, abs=60)
    assert seconds(log.end) == pytest.approx(now - SECONDS, abs=60)  # the first event of the next file
    assert unapplied_seconds(settings, LAG.model_copy(update={"behind": 0})) == 0.0
    assert unapplied_seconds(settings, LAG.model_copy(update={"behind": None})) is None
