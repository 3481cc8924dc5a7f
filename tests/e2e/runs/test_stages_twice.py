"""Every stage run twice: the second run changes nothing. Two at once: one commits, the other sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = pytest.mark.e2e


def test_a_second_initial_load_changes_nothing(loaded: Loaded) -> None:
    staged, snapshots = loaded.staged(), loaded.snapshots()
    result = loaded.json("initial-load")
    assert {table["status"] for table in result["tables"]} == {"already"}
    assert loaded.staged() == staged
    assert loaded.snapshots() == snapshots


def test_a_delta_makes_the_tables_equal_and_again_changes_nothing(loaded: Loaded) -> None:
    # Moments around the hour that this zone has twice, made and read where it is another time than in UTC.
    twice = [
        f"UPDATE shop.orders SET updated_at = FROM_UNIXTIME({1775312100 + n * 900}) WHERE id = {n}" for n in range(9)
    ]
    loaded.execute("SET GLOBAL time_zone = '+05:45'", *changes(1), *twice)
    done = loaded.loader("--json", "run", TZ="Australia/Lord_Howe")
    loaded.execute("SET GLOBAL time_zone = 'SYSTEM'")
    assert done.returncode == 0, (done.stdout, done.stderr)
    first = json.loads(done.stdout)
    assert [one["status"] for one in first["extracts"]] == ["staged"]
    assert loaded.differences() == NOTHING_DIFFERS
    staged, snapshots = loaded.staged(), loaded.snapshots()

    again = loaded.json("extract", "--interval", str(first["intervals"][0]["start_seqno"]))
    assert again["status"] == "already"
    merged = loaded.json("materialise")
    assert {table["status"] for table in merged["tables"]} <= {"already", "unchanged"}
    quiet = loaded.json("run")
    assert not quiet["intervals"][0]["new"]
    assert loaded.staged() == staged
    assert loaded.snapshots() == snapshots


@pytest.mark.sweep
def test_a_run_that_asks_again_gets_its_own_interval(loaded: Loaded) -> None:
    loaded.execute(*changes(2))
    mine = loaded.json("plan", "--run", "dag/one")
    loaded.execute(*changes(3))
    assert loaded.json("plan", "--run", "dag/one") == {**mine, "new": False}
    assert loaded.json("plan")["start_seqno"] == mine["start_seqno"]  # unfinished comes first
    loaded.json("extract")
    following = loaded.json("plan", "--run", "dag/two")
    assert following["start"] == mine["stop"]
    assert loaded.json("plan", "--run", "dag/one") == {**mine, "new": False}
    loaded.json("run")


@pytest.mark.sweep
def test_an_xa_transaction_counts_from_the_interval_of_its_commit(loaded: Loaded) -> None:
    insert = "INSERT INTO shop.reviews VALUES (200000, 'SKU1', 1, 'xa', NULL)"
    loaded.execute("XA START 'held'", insert, "XA END 'held'", "XA PREPARE 'held'")
    held = loaded.json("run")
    assert held["extracts"][0]["tables"] == []
    assert loaded.differences() == NOTHING_DIFFERS
    loaded.execute("XA COMMIT 'held'")
    decided = loaded.json("run")
    (table,) = decided["extracts"][0]["tables"]
    assert table.pop("bytes") > 0
    assert table == {"table": "shop.reviews", "inserts": 1, "updates": 0, "deletes": 0}
    assert loaded.differences() == NOTHING_DIFFERS


def test_two_deltas_at_once_end_in_one(loaded: Loaded) -> None:
    loaded.execute(*changes(4))
    interval = str(loaded.json("plan")["start_seqno"])
    extracts = _both(loaded, "extract", "--interval", interval)
    assert all(code == 0 for code, _ in extracts), extracts
    merges = _both(loaded, "materialise")
    assert all(code == 0 for code, _ in merges), merges
    assert loaded.differences() == NOTHING_DIFFERS
    states = loaded.json("intervals")
    assert [state["state"] for state in states] == ["applied"] * len(states)
    assert [state["stop"] for state in states[:-1]] == [state["start"] for state in states[1:]]


def _both(loaded: Loaded, *arguments: str) -> list[tuple[int, str]]:
    argv = [sys.executable, "-m", "loader", "--config", str(loaded.config), "--json", *arguments]
    processes = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | loaded.env)
        for _ in range(2)
    ]
    outputs = [process.communicate()[0] for process in processes]
    return [(process.returncode, output) for process, output in zip(processes, outputs, strict=True)]
