"""Things in the cache are built once and appear whole, whoever builds at the same time or dies meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from infra.servers.cache import build_once, cache_folder

BUILD = """
import sys
from pathlib import Path
from infra.servers.cache import build_once

def build(folder):
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")
    (folder / "file").write_text("whole")

assert (build_once(Path(sys.argv[1]), build) / "file").read_text() == "whole"
"""


def test_several_processes_build_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", BUILD, str(tmp_path / "thing"), str(log)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(30) for process in processes] == [0, 0, 0, 0]
    assert log.read_text() == "built\n"


def test_a_failed_build_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "file").write_text("half")
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        build_once(tmp_path / "thing", fail)
    assert not (tmp_path / "thing").exists()
    assert list(build_once(tmp_path / "thing", lambda folder: None).iterdir()) == []


def test_what_a_killed_build_left_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / ".thing.partial").mkdir()
    (tmp_path / ".thing.partial" / "half").touch()
    assert list(build_once(tmp_path / "thing", lambda folder: None).iterdir()) == []


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOADER_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("LOADER_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "binlog-loader"
