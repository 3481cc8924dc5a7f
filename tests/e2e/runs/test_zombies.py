"""An extraction that stops in the middle (SIGSTOP), is overtaken by whole deltas, and wakes up again (SIGCONT).

A merge that stops so holds its table's lock, on this catalog, and nobody can overtake it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infra.servers.process import wait_until
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.sweep import IN_SWEEP

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]


def started(loaded: Loaded, *arguments: str, point: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "loader", "--config", str(loaded.config), "--json", *arguments]
    env = os.environ | loaded.env | {"LOADER_FAILPOINT": f"{point}:stop"}
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env, cwd=loaded.home)


def stopped(loaded: Loaded) -> list[int]:
    """Processes that were started here and stopped themselves."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            halted = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "T"
            if halted and str(loaded.config).encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue  # it ended meanwhile
    return found


@pytest.mark.parametrize("point", ["part.before", "manifest.before"] if IN_SWEEP else ["part.before"])
def test_an_extraction_that_wakes_up_late_finds_its_work_done(loaded: Loaded, point: str) -> None:
    loaded.json("run")
    loaded.execute(*changes(70 + len(point)))
    interval = str(loaded.json("plan")["start_seqno"])
    loaded.env["LOADER_TEST"] = str(loaded.config)
    zombie = started(loaded, "extract", "--interval", interval, point=point)
    assert wait_until(lambda: bool(stopped(loaded)), 120)

    overtaking = loaded.json("run")
    assert [one["status"] for one in overtaking["extracts"]] == ["staged"]
    loaded.execute(*changes(90 + len(point)))
    loaded.json("run")
    manifest, snapshots = loaded.json("intervals", interval)["manifest"], loaded.snapshots()

    while zombie.poll() is None:  # tasks come one after the other to the point
        for pid in stopped(loaded):
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: zombie.poll() is not None or bool(stopped(loaded)), 60)
    assert zombie.returncode == 0
    assert json.loads(zombie.communicate()[0])["status"] == "already"
    assert loaded.json("intervals", interval)["manifest"] == manifest
    assert loaded.json("intervals", interval, "--verify") == []
    assert loaded.snapshots() == snapshots
    assert loaded.differences() == NOTHING_DIFFERS
