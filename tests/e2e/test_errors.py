"""What goes wrong in practice: each has its own clear error, no traceback, the documented exit code, and heals."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def healed(loaded: Loaded) -> Iterator[Loaded]:
    """The loaded shop; once all its faults are over, one more run makes everything equal."""
    yield loaded
    loaded.json("run")
    assert loaded.differences() == NOTHING_DIFFERS
    assert {state["state"] for state in loaded.json("intervals")} == {"applied"}


@pytest.fixture
def source(healed: Loaded) -> Iterator[Loaded]:
    """The same, with its own configuration again after each test."""
    yield healed
    healed.configure()


def _refused(source: Loaded, *arguments: str, code: int, says: str, **env: str) -> str:
    done = source.loader(*arguments, **env)
    text = done.stdout + done.stderr
    assert done.returncode == code, text
    assert says in text
    assert "Traceback" not in text
    assert "what to do:" in text
    return text


def _read_files(source: Loaded, folder: Path) -> None:
    """Configure the source to read the log files of a folder."""
    text = source.config.read_text(encoding="utf-8").replace('"network"', '"file"')
    source.config.write_text(text.replace(str(source.server.log_dir), str(folder)), encoding="utf-8")


def test_a_wrong_password(source: Loaded) -> None:
    source.configure(password="env:SHOP_PASSWORD")
    text = _refused(source, "plan", code=1, says="the server refused the user", SHOP_PASSWORD="wr0ng-s3cret")
    assert "wr0ng-s3cret" not in text
    _refused(source, "plan", code=2, says="SHOP_PASSWORD is not set")


def test_a_stopped_server(source: Loaded) -> None:
    source.execute(*changes(40))
    interval = str(source.json("plan")["start_seqno"])
    source.server.stop()
    try:
        _refused(source, "extract", "--interval", interval, code=3, says="the server does not answer")
    finally:
        source.server.start()
    assert source.json("extract", "--interval", interval)["status"] == "staged"


def test_a_purged_log_is_named_and_an_archive_heals_it(source: Loaded, tmp_path: Path) -> None:
    source.execute(*changes(41), "FLUSH BINARY LOGS")
    planned = source.json("plan")
    newest, _, _ = planned["stop"].partition(":")
    archive = tmp_path / "archive"
    archive.mkdir()
    for file in source.server.log_dir.glob("binlog.[0-9]*"):
        shutil.copy(file, archive)
    source.execute(f"PURGE BINARY LOGS TO '{newest}'")
    interval = str(planned["start_seqno"])
    text = _refused(source, "extract", "--interval", interval, code=4, says="a log file that is still needed is gone")
    assert planned["start"].partition(":")[0] in text
    _read_files(source, archive)
    assert source.json("extract", "--interval", interval)["status"] == "staged"


def test_a_log_that_is_purged_soon_is_told_in_time(source: Loaded) -> None:
    source.execute("SET GLOBAL binlog_expire_logs_seconds = 7200", *changes(42))
    source.json("plan")
    try:
        runway = source.json("status")["runway"]
    finally:
        source.execute("SET GLOBAL binlog_expire_logs_seconds = DEFAULT")
    assert (runway["rule"], 1.9 < runway["hours"] <= 2) == ("age", True)
    assert f"{runway['file']} is kept for another 7" in source.loader("status").stdout  # thirty days


def test_statement_format(source: Loaded) -> None:
    source.execute("SET GLOBAL binlog_format = 'STATEMENT'")
    try:
        _refused(source, "run", code=1, says="the server has binlog_format=STATEMENT")
    finally:
        source.execute("SET GLOBAL binlog_format = 'ROW'")
    assert source.json("plan")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk(source: Loaded, tmp_path: Path) -> None:
    source.execute(*changes(43))
    interval = source.json("plan")["start_seqno"]
    folder = next(path for path in (source.home / "staging").glob(f"shop/*/{interval:020d}"))
    # The plan is there; the rest of the interval's folder gets a disk of its own.
    plan = (folder / "plan.json").read_bytes()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        (folder / "plan.json").write_bytes(plan)
        text = _refused(source, "extract", "--interval", str(interval), code=3, says="the staging store failed")
        assert "No space left on device" in text
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
        assert source.json("extract", "--interval", str(interval))["status"] == "staged"
        kept = tmp_path / "kept"
        shutil.copytree(folder, kept)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    shutil.copytree(kept, folder, dirs_exist_ok=True)


def test_a_corrupt_byte_in_the_log(source: Loaded, tmp_path: Path) -> None:
    source.execute(*changes(44))
    planned = source.json("plan")
    copies = tmp_path / "logs"
    copies.mkdir()
    for file in source.server.log_dir.glob("binlog.[0-9]*"):
        shutil.copy(file, copies)
    name, _, start = planned["start"].partition(":")
    damaged = copies / name
    whole = damaged.read_bytes()
    at = int(start) + 200
    damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    _read_files(source, copies)
    interval = str(planned["start_seqno"])
    said = _refused(source, "extract", "--interval", interval, code=4, says="the checksum of an event is wrong")
    assert name in said
    damaged.write_bytes(whole)
    assert source.json("extract", "--interval", interval)["status"] == "staged"


@pytest.mark.sweep
def test_a_deleted_staged_file(source: Loaded, tmp_path: Path) -> None:
    source.execute(*changes(45))
    planned = source.json("plan")
    source.json("extract")
    folder = next((source.home / "staging").glob(f"shop/*/{planned['start_seqno']:020d}"))
    part = sorted(folder.rglob("*.csv"))[0]
    shutil.move(part, tmp_path / "part.csv")
    text = _refused(source, "materialise", code=4, says="missing")
    assert part.name in text
    shutil.move(tmp_path / "part.csv", part)
    _refused(source, "materialise", code=4, says="quarantined since")
    (stopped,) = source.json("status")["quarantined"]
    assert f"{stopped['table']} " in source.loader("status").stdout
    (released,) = source.json("release", stopped["table"])
    assert released == stopped
    assert source.json("status")["released"] == [stopped["table"]]
    _refused(source, "release", stopped["table"], code=2, says="is not quarantined")
    source.json("materialise")
