"""What the doctor finds on a machine whose Java or packages are not what the loader asks for, by its command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.extract.intervals import FILE
from tests.unit.pipeline.site import shop


def doctor(folder: Path, name: str, **env: str) -> list[tuple[str, str]]:
    """What is found under a name: severity and text; of log files and this machine."""
    (folder / FILE).write_bytes(bytes(shop(1)[0].data))
    done = subprocess.run(
        [sys.executable, "-m", "loader", "--json", "doctor", "--source", f"file://{folder}"],
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
    )
    return [(one["severity"], one["what"]) for one in json.loads(done.stdout) if one["name"] == name]


@pytest.mark.parametrize(
    ("where", "version", "severity", "what"),
    [
        ("PATH", "11.0.2", "error", "11.0.2 is too old for Spark"),
        ("JAVA_HOME", "24", "warning", "24: Spark is not tested with it"),
    ],
)
def test_the_java_that_spark_would_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, version: str, severity: str, what: str
) -> None:
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\n[ "$*" = -version ] && echo \'openjdk version "{version}" 2020-01-14\' >&2\n')
    program.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    value = str(program.parents[1]) if where == "JAVA_HOME" else f"{program.parent}:{os.environ['PATH']}"
    assert doctor(tmp_path, "java", **{where: value}) == [(severity, what)]


def test_a_package_of_another_version_that_is_found_first(tmp_path: Path) -> None:
    shadow = tmp_path / "shadow" / "pyspark-3.5.0.dist-info"
    shadow.mkdir(parents=True)
    (shadow / "METADATA").write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 3.5.0\n")
    first, second = doctor(tmp_path, "packages", PYTHONPATH=str(shadow.parent))
    assert first == ("error", "pyspark 3.5.0 is installed, but the loader needs >=4.0,<4.2,!=4.0.5,!=4.1.4")
    assert second == ("error", "pyspark 3.5.0 and pyspark-client 4.1.3 differ")
