"""Tables that take the rows of each other while one of them is quarantined."""

from __future__ import annotations

import pytest

from loader.materialise.merge import source_run
from tests.integration.materialise.live_source import LiveSource, live

__all__ = ["live"]
pytestmark = pytest.mark.integration


def test_waiting_tables_are_merged_in_any_order(live: LiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new life of `x` becomes `t`, under a third name in between. `t` is first in line: it has the most bytes."""
    monkeypatch.setattr(source_run, "tables_at_once", lambda _: 1)
    live.run("CREATE TABLE t (id INT PRIMARY KEY)")
    live.load()
    live.run(
        "ALTER TABLE t ADD COLUMN v DATE DEFAULT '20-1-2'",
        "CREATE TABLE x (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew)",
        "INSERT INTO x VALUES (1, _hebrew X'61A1')",
    )
    assert live.statuses(live.delta()) == {"t": "quarantined", "x": "quarantined"}
    live.run(
        "DROP TABLE x",
        "CREATE TABLE x (id INT PRIMARY KEY)",
        "INSERT INTO x VALUES (1)",
        "RENAME TABLE x TO u",
        "RENAME TABLE t TO x",
        "RENAME TABLE u TO t",
        "INSERT INTO t VALUES (2), (3)",
    )
    found = live.statuses(live.delta())
    assert (found["t"], found["x"]) == ("applied", "quarantined")
    found = live.statuses(live.merge())
    assert (found["t"], found["x"]) == ("already", "quarantined")
    assert live.differences() == ["x"]
