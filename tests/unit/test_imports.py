"""What a process must not import, and the layers of the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.reader.logs import busy, written

MOST_MODULES = 600
"""What a listing of a small log may import: numpy and typer with their own imports are two thirds of it."""

CHECKOUT = Path(__file__).resolve().parents[2]
JOBS = [
    "loader.extract.jobs.extract_job",
    "loader.materialise.jobs.materialise_job",
    "loader.materialise.jobs.load_job",
    "loader.verify.job",
]
LOADED = """
import importlib, sys
importlib.import_module({module!r})
print(*sorted({{name.split(".")[0] for name in sys.modules}}))
"""


INSPECT = """
import json, sys
from pathlib import Path
from loader.cli.app import main
sys.argv = ["loader", "inspect", {log!r}]
try:
    main()
except SystemExit as done:
    assert not done.code
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
# A module that is loaded on first use counts once it is used.
names = sorted(name for name, module in sys.modules.items() if type(module).__name__ != "_LazyModule")
print(json.dumps({{"modules": names, "threads": int(status["Threads"])}}), file=sys.stderr)
"""


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)


def imported(module: str) -> set[str]:
    """Top packages that a new interpreter has after importing the module."""
    done = run(sys.executable, "-c", LOADED.format(module=module))
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("module", JOBS)
def test_a_spark_job_imports_no_airflow(module: str) -> None:
    assert "airflow" not in imported(module)


@pytest.mark.parametrize("module", ["loader.materialise.jobs.materialise_job", "loader.materialise.jobs.load_job"])
def test_materialisation_imports_no_driver_no_store_client_and_no_codec(module: str) -> None:
    found = imported(module)
    assert "pyspark" in found
    assert found & {"pymysql", "boto3", "numba"} == set()


@pytest.mark.parametrize("module", ["loader.config.file", "loader.staging.chain", "loader.extract.spec"])
def test_configuration_and_documents_are_light(module: str) -> None:
    assert imported(module) & {"airflow", "pyspark", "pandas", "boto3"} == set()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="threads are counted by Linux")
def test_a_listing_of_a_small_log_starts_light(tmp_path: Path) -> None:
    (log,) = written(tmp_path / "log", [bytes(busy(3).data)])
    done = run(sys.executable, "-c", INSPECT.format(log=str(log)))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stderr.splitlines()[-1])
    modules = set(found["modules"])
    packages = {name.partition(".")[0] for name in modules}
    heavy = {"airflow", "boto3", "botocore", "numba", "pandas", "py4j", "pyarrow", "pyiceberg", "pymysql", "pyspark"}
    assert packages & heavy == set()
    parts = {name.split(".")[1] for name in modules if name.startswith("loader.")}
    assert parts & {"airflow", "delta", "extract", "initial_load", "native_collapse", "verify"} == set()
    of_commands_on_a_source = {"loader.config.source", "loader.spark.submit", "loader.transport.network"}
    assert modules & {*of_commands_on_a_source, "loader.transport.server.connection"} == set()
    assert len(modules) < MOST_MODULES
    assert found["threads"] == 1, "numpy's BLAS has started threads"


def test_the_layers_hold() -> None:
    done = run(str(Path(sys.executable).parent / "lint-imports"))
    assert done.returncode == 0, done.stdout + done.stderr
