"""Maintenance before the log is merged up to the end of an initial load."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.materialise.jobs.maintain_job import maintain
from tests.integration.materialise.live_source import LiveSource, live
from tests.support.planned_loads import change_after_plan

__all__ = ["live"]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_a_table_that_was_altered_while_it_was_read_stops(live: LiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT)", "INSERT INTO a VALUES (1, 10, 20)")

    def change() -> None:
        live.run("INSERT INTO a VALUES (2, 10, 20)")
        live.stage()
        live.run("ALTER TABLE a CHANGE x y INT AFTER id, CHANGE y x INT AFTER id")

    change_after_plan(monkeypatch, change)
    live.load()
    assert live.statuses(live.merge()) == {"a": "applied"}
    _expire_snapshots(live)
    assert live.statuses(live.delta()) == {"a": "quarantined"}


def _expire_snapshots(source: LiveSource) -> None:
    spec = pipeline.maintain_job(source.settings).spec
    result = maintain(source.spark, cast("Any", spec).model_copy(update={"keep_days": 0}))
    assert [table.error for table in result.tables] == [None]
