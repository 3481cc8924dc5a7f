"""What a process must not import, and the layers of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("module", ["loader.config", "loader.staging.chain", "loader.extract.spec"])
def test_configuration_and_documents_are_light(module: str) -> None:
    assert imported(module) & {"airflow", "pyspark", "pandas", "boto3"} == set()


def test_the_layers_hold() -> None:
    done = run(str(Path(sys.executable).parent / "lint-imports"))
    assert done.returncode == 0, done.stdout + done.stderr
