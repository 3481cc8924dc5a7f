"""The scripts of the set-up: they fail with what to do, and say so in one place."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

INFRA = Path(__file__).resolve().parents[2] / "infra"
SCRIPTS = sorted(INFRA.glob("*.sh"))


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_parses_and_may_be_executed(script: Path) -> None:
    shell = script.read_text().splitlines()[0].rpartition("/")[2].split()[-1]
    assert run(shell, "-n", script).returncode == 0
    assert os.access(script, os.X_OK)


def test_python_is_one_that_the_project_supports() -> None:
    found = run(INFRA / "python.sh").stdout.strip()
    version = run(found, "-c", "import sys; print(sys.version_info[:2])").stdout.strip()
    assert version in {"(3, 11)", "(3, 12)", "(3, 13)"}


def test_no_python_says_what_to_install(tmp_path: Path) -> None:
    done = run(INFRA / "python.sh", PATH=f"{tmp_path}")
    assert done.returncode == 1
    assert "apt-get install -y python3.13 python3.13-venv" in done.stderr


def test_java_home_without_java_is_named(tmp_path: Path) -> None:
    done = run(INFRA / "java.sh", JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert f"JAVA_HOME is {tmp_path}" in done.stderr


def test_an_old_java_is_not_enough(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    assert run(INFRA / "java.sh", JAVA_HOME=str(tmp_path)).returncode == 1


def test_a_failed_step_shows_its_end_and_its_log(tmp_path: Path) -> None:
    done = run(INFRA / "step.sh", "some thing", "sh", "-c", "seq 100; exit 7", LOADER_CACHE=str(tmp_path))
    log = tmp_path / "logs" / "some-thing.log"
    assert done.returncode == 7
    assert f"FAILED, see {log}" in done.stderr
    assert "    100\n" in done.stderr
    assert "    50\n" not in done.stderr
    assert log.read_text().startswith("1\n2\n")


def test_a_good_step_is_one_line(tmp_path: Path) -> None:
    done = run(INFRA / "step.sh", "some thing", "echo", "noise", LOADER_CACHE=str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.split()[:2] == ["some", "thing"]
    assert "noise" not in done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_diagrams_without_npm_say_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "bash").symlink_to("/bin/bash")
    done = run(INFRA / "mermaid.sh", PATH=str(tmp_path), LOADER_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert "apt-get install -y npm" in done.stderr


def test_a_script_of_the_diagrams_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(
        '#!/bin/sh\ncd "$4" && mkdir -p package/dist && echo other > package/dist/mermaid.min.js && '
        'tar -czf "mermaid-${5#mermaid@}.tgz" package\n'
    )
    npm.chmod(0o755)
    done = run(INFRA / "mermaid.sh", PATH=f"{npm.parent}:{os.environ['PATH']}", LOADER_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert "does not have the digest in infra/mermaid.sh" in done.stderr
    assert not list(tmp_path.rglob("mermaid.min.js"))
