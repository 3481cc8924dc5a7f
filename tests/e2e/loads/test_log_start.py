"""A chain that begins with the oldest log file: the tables come from the log alone, up to a place, then up to its end."""

from __future__ import annotations

import pytest

from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.replicas import run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]


def test_tables_come_from_the_log_alone(empty: Loaded) -> None:
    ((gtids,),) = run(empty.server, "SELECT @@global.gtid_executed")
    empty.execute(*changes(60))
    assert empty.json("begin", "--at", "begin")["start"] == "binlog.000001:4"

    first = empty.json("run", "--until", gtids)
    until = first["intervals"][-1]["stop"]
    assert {one["status"] for one in first["materialise"]["tables"]} == {"applied"}
    again = empty.json("run", "--until", until)
    assert {one["status"] for one in again["materialise"]["tables"]} == {"already"}

    empty.json("run")
    assert empty.differences() == NOTHING_DIFFERS
    refused = empty.json("run", "--until", until, code=2)
    assert refused["hint"].startswith("loader run --until ")
