"""When a reader waits."""

from __future__ import annotations

import pytest

from loader.initial_load.server.read_limits import ReadLimits, ServerLoad, reason_to_wait


@pytest.mark.parametrize(
    ("limits", "load", "reason"),
    [
        ({}, ServerLoad(10_000, None), ""),
        ({"max_threads_running": 5}, ServerLoad(5, None), ""),
        (
            {"max_threads_running": 5},
            ServerLoad(6, 0),
            "the server has 6 running threads, more than 5",
        ),
        ({"max_replica_lag_seconds": 30}, ServerLoad(99, 30), ""),
        (
            {"max_replica_lag_seconds": 30},
            ServerLoad(0, 31),
            "the server is 31 s behind its source, more than 30 s",
        ),
        (
            {"max_replica_lag_seconds": 30},
            ServerLoad(0, None),
            "replication on the server is stopped, so its lag is unknown",
        ),
        (
            {"max_threads_running": 5, "max_replica_lag_seconds": 30},
            ServerLoad(6, 31),
            "the server has 6 running threads, more than 5",
        ),
    ],
)
def test_the_reason_to_wait(limits: dict[str, int], load: ServerLoad, reason: str) -> None:
    assert reason_to_wait(ReadLimits(**limits), load) == reason
