"""Statements that delete rows without naming them: the log has the statement, and not the rows."""

from __future__ import annotations

import os

import pytest
from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif("LOADER_SWEEP" not in os.environ, reason="one of the long tests"),
]

LISTS = "PARTITION BY LIST (id) (PARTITION p VALUES IN (1, 2), PARTITION q VALUES IN (3))"
RANGES = "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (3), PARTITION q VALUES LESS THAN (9))"


def test_partitions_that_are_reorganized(live: LiveSource) -> None:
    """Rows that are in no new list are deleted. New ranges keep all rows."""
    for table, partitions in (("lists", LISTS), ("ranges", RANGES)):
        live.run(
            f"CREATE TABLE {table} (id INT PRIMARY KEY) {partitions}",
            f"INSERT INTO {table} VALUES (1), (2), (3)",
        )
    live.load()
    live.run(
        "ALTER TABLE lists REORGANIZE PARTITION p INTO (PARTITION p VALUES IN (1))",
        "ALTER TABLE ranges REORGANIZE PARTITION p, q INTO (PARTITION r VALUES LESS THAN (9))",
        "INSERT INTO ranges VALUES (4)",
    )
    assert live.run("SELECT id FROM lists") == [(1,), (3,)]
    assert live.statuses(live.delta()) == {"lists": "quarantined", "ranges": "applied"}
    live.load_again("lists")
    live.run("DELETE FROM lists WHERE id = 3")
    assert live.statuses(live.delta())["lists"] == "applied"
    assert live.differences() == []
