"""What a demo deletes: an earlier demo, and nothing that anybody still uses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from loader.cli.demo import stage
from loader.cli.demo.stage import DemoServer, clear, write_configuration
from loader.errors import UsageError
from loader.transport.server.address import ServerAddress


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    for part in ("mysql/data", "warehouse/shop"):
        (folder / part).mkdir(parents=True)
    return folder


def _kept(home: Path) -> bool:
    return (home / "mysql" / "data").is_dir() and (home / "warehouse" / "shop").is_dir()


def test_an_earlier_demo_is_deleted(home: Path) -> None:
    (home / "loader.toml").write_text("# Written by the demo; a configuration of your own looks the same.\n")
    clear(home, DemoServer(home, None))
    assert not _kept(home)
    (home / "mysql" / "data").mkdir(parents=True)  # of a demo that failed before it wrote a configuration
    (home / "loader.toml").unlink()
    clear(home, DemoServer(home, None))
    assert not (home / "mysql").exists()


def test_a_demo_whose_server_runs_is_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "loader.toml").write_text("# Written by the demo\n")
    monkeypatch.setattr(DemoServer, "running", lambda _: True)
    with pytest.raises(UsageError, match=r"(?s)is running.*loader demo --folder ANOTHER"):
        clear(home, DemoServer(home, None))
    assert _kept(home)


@pytest.mark.parametrize("text", ["", "[staging]\n"])
def test_what_is_not_of_a_demo_is_kept(text: str, home: Path) -> None:
    if text:
        (home / "loader.toml").write_text(text)
    with pytest.raises(UsageError, match="does not belong to a demo"):
        clear(home, DemoServer(home, None))
    assert _kept(home)


def test_the_query_script_needs_nothing_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, other = tmp_path / "gone", tmp_path / "pyspark"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "spark-sql").write_text('#!/bin/sh\nprintf "%s\\n" "$SPARK_HOME" "$@"\n')
    (other / "bin" / "spark-sql").chmod(0o755)
    (other / "__init__.py").touch()
    monkeypatch.setattr(stage, "environment", lambda _: {"SPARK_HOME": str(gone)})
    home = tmp_path / "it's a demo"
    home.mkdir()
    write_configuration(home, ServerAddress(host="h", port=1, user="u"), jars=str(tmp_path / "jars"))
    script = (home / "query").read_text()
    checkout = str(Path(stage.__file__).resolve().parents[3])
    assert checkout not in script
    done = subprocess.run(
        [home / "query", "SELECT 1"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == str(other)
    assert lines[-2:] == ["-e", "SELECT 1"]
    assert f"spark.sql.catalog.lake.warehouse={home}/warehouse" in lines
    assert (home / "log4j2.properties").is_file()
