"""The wheel has everything that a machine without the checkout needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("LOADER_CACHE") or Path.home() / ".cache" / "binlog-loader")
UV = str(CHECKOUT / "infra" / "uv.sh")


def has_uv() -> bool:
    """Whether infra/uv.sh has fetched its uv, so that running it downloads nothing."""
    return any((CACHE / "bin").glob("uv-*"))


def run(argv: Sequence[str], **more: object) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    if find_spec("hatchling"):
        run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=CHECKOUT)
    elif has_uv():
        run([UV, "build", "--wheel", "--out-dir", str(folder)], cwd=CHECKOUT)
    else:
        pytest.skip("needs hatchling in the environment, or the uv of infra/uv.sh")
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    if find_spec("pip"):
        run([sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(folder), str(wheel)])
    elif has_uv():
        run([UV, "pip", "install", "--no-deps", "--quiet", "--target", str(folder), str(wheel)])
    else:
        pytest.skip("needs pip in the environment, or the uv of infra/uv.sh")
    return folder


def test_the_wheel_holds_all_files_that_are_no_modules(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    folders = {"sql": "_sql", "dags": "_dags", "infra/servers": "_servers"}
    expected = {"loader/spark/log4j2.properties", "loader/py.typed", "loader/binlog/values/codepages.bin"}
    expected |= {"loader/_reference/errors.md", "loader/page/style.css", "loader/page/icon.svg"}
    expected |= {
        "loader/jars/jars.lock",
        "loader/cli/commands/setup/loader.toml.template",
        "loader/_airflow/superseded_dags.json",
        "loader/_airflow/connections.json",
    }
    for source, target in folders.items():
        files = [path for path in (CHECKOUT / source).rglob("*") if path.suffix in {".sql", ".py"}]
        assert files
        expected |= {f"loader/{target}/{path.relative_to(CHECKOUT / source).as_posix()}" for path in files}
    assert expected - names == set()
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    names = {name for name in ZipFile(wheel).namelist() if name.startswith("loader/") and name.endswith(".py")}
    modules = {path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "loader").rglob("*.py")}
    assert modules - names == set()
    assert {name for name in names - modules if not name.startswith(("loader/_dags/", "loader/_servers/"))} == set()
    assert not [name for name in ZipFile(wheel).namelist() if "__pycache__" in name or name.startswith("tests")]


SCRIPT = """
import loader
from loader.resources import folder, sql
print(loader.__file__)
print(folder("sql"), folder("dags"), folder("servers"), sep="\\n")
assert "CREATE TABLE" in sql("demo/shop"), sql("demo/shop")
assert sorted(path.name for path in folder("dags").glob("*.py"))
"""


def test_an_installed_wheel_finds_its_own_files(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    found = run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment).split()
    assert [Path(line).is_relative_to(installed) for line in found] == [True] * 4, found


def test_the_command_of_an_installed_wheel_answers(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    assert "initial-load" in run([sys.executable, "-m", "loader", "--help"], cwd=tmp_path, env=environment)
