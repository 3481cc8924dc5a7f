"""A backlog in several intervals, each looked at, extracted again, and verified, by the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = pytest.mark.e2e


@pytest.mark.sweep
def test_a_backlog_is_done_in_intervals_and_each_comes_out_the_same_again(loaded: Loaded) -> None:
    loaded.json("run")
    before = len(loaded.json("intervals"))
    with loaded.config.open("a", encoding="utf-8") as config:
        config.write("interval = { bytes = 0, transactions = 3 }\n")
    loaded.execute(*changes(60))
    done = loaded.json("run")
    assert len(done["intervals"]) == len(done["extracts"]) == 3
    assert [one["status"] for one in done["extracts"]] == ["staged"] * 3
    assert loaded.differences() == NOTHING_DIFFERS
    states = loaded.json("intervals")[before:]
    assert [(one["state"], one["behind"]) for one in states] == [("applied", [])] * 3

    start = str(states[0]["start_seqno"])
    staged = loaded.staged()
    again = loaded.json("staged", "compare", start)
    assert again["differences"] == []
    assert again["bytes"] == states[0]["bytes"] > 0
    assert loaded.staged() == staged

    manifest = loaded.json("intervals", start)["manifest"]
    key = manifest["files"][0]["key"]
    changed = {**manifest, "files": [{**manifest["files"][0], "bytes": 1}, *manifest["files"][1:]]}
    path = loaded.home / "staging" / Path(*key.split("/")[:3]) / "manifest.json"
    original = path.read_bytes()
    path.write_text(json.dumps(changed), encoding="utf-8")
    try:
        again = loaded.json("staged", "compare", start, code=4)
        assert [one["name"] for one in again["differences"]] == [key.split("/", 4)[-1]]
        assert [one["file"] for one in loaded.json("intervals", start, "--verify", code=4)] == [key]
    finally:
        path.write_bytes(original)
    assert loaded.json("intervals", start, "--verify") == []
    loaded.configure()
