"""The wheel alone, in a fresh environment and far from the checkout: from `loader init` to tables that are compared."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.sweep,
]

_ROOT = Path(__file__).resolve().parents[2]
_UV = str(_ROOT / "infra" / "uv.sh")


class Installed:
    """A virtual environment with the wheel, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "work"
        self.home.mkdir()
        _run(_UV, "build", "--wheel", "--out-dir", str(folder / "dist"), cwd=_ROOT)
        (wheel,) = (folder / "dist").glob("*.whl")
        _run(_UV, "venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
        self._programs = folder / "venv" / "bin"
        packages = [f"{wheel}[spark,airflow]", "-c", str(_ROOT / "constraints.txt")]
        _run(_UV, "pip", "install", "--quiet", "--python", str(self._programs / "python"), *packages)
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LOADER"))}
        path = f"{self._programs}:{os.environ['PATH'].replace(str(_ROOT), '/nowhere')}"
        cache = os.environ.get("LOADER_CACHE")
        self.env = outside | {"PATH": path, "AIRFLOW_HOME": str(self.home / "airflow")}
        self.env |= {"LOADER_CACHE": cache} if cache else {}

    def run(self, program: str, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        argv = [str(self._programs / program), *arguments]
        done = subprocess.run(argv, env=self.env, cwd=self.home, capture_output=True, text=True, check=False)
        assert done.returncode in codes, f"{shlex.join(argv)}\n{done.stdout}\n{done.stderr}"
        assert str(_ROOT) not in done.stdout
        return done.stdout


def _run(*argv: str, cwd: Path | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def shop(installed: Installed, tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Loaded]:
    with start_server("mysql", tmp_path_factory.mktemp("server") / "data") as server:
        found = Loaded(server, installed.home, jars)
        create_shop(found.address, 1000)
        yield found


def test_from_init_to_compared_tables(installed: Installed, shop: Loaded) -> None:
    place = ["--staging", f"file://{installed.home}/staging", "--warehouse", f"{installed.home}/warehouse"]
    server = ["--host", shop.server.host, "--port", str(shop.server.port), "--user", "loader", "--password", ""]
    answers = [*server, "--tables", "shop.*", "--catalog", "hadoop", *place]
    told = installed.run("loader", "init", *answers, "--no-check")
    # The SQL that it prints is run as it is; without a password here.
    statements = [line for line in told.splitlines() if line.startswith(("SET", "CREATE", "GRANT"))]
    assert len(statements) == 6
    shop.execute(*(line.replace("IDENTIFIED BY '...'", "").rstrip(";") for line in statements))
    assert " 0 errors" in f" {installed.run('loader', 'doctor', codes=(0, 4)).splitlines()[-1]}"

    installed.run("loader", "initial-load")
    shop.execute(*changes(1))
    installed.run("loader", "run")
    assert shop.differences() == NOTHING_DIFFERS

    installed.run("airflow", "db", "migrate")
    first = installed.run("loader", "airflow", "install")
    assert "added pool shop.load\nadded pool shop.spark\n" in first
    assert "added connection spark_default\n" in first
    installed.run("airflow", "pools", "set", "shop.spark", "3", "changed by a person")
    second = installed.run("loader", "airflow", "install")
    assert "added" not in second
    assert "LOADER_CONFIG=" in second
    assert '"slots": "3"' in installed.run("airflow", "pools", "get", "shop.spark", "--output", "json")
    installed.env["LOADER_CONFIG"] = str(shop.config)
    installed.run("airflow", "dags", "reserialize")
    listed = installed.run("airflow", "dags", "list", "--output", "plain")
    assert [name for name in ("shop.delta", "shop.initial_load", "shop.replay") if name not in listed] == []


def test_the_demo(installed: Installed) -> None:
    folder = str(installed.home / "demo")
    told = installed.run("loader", "demo", "--rows", "500", "--deltas", "1", "--folder", folder)
    assert "every row and column is equal" in told
    done = subprocess.run(
        [f"{folder}/query", "SELECT count(*) FROM lake.shop.orders"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert int(done.stdout.split()[-1]) > 0
