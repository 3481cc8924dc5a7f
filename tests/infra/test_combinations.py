"""The combinations of Airflow and Spark. The sweep builds an environment of each, and runs a small suite in it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from infra.combinations import COMBINATIONS, Combination, install
from loader.jars.lock import spark_lines

ROOT = Path(__file__).resolve().parents[2]
LONG = ("tests/e2e/test_airflow_approval.py", "tests/e2e/test_airflow_repair.py")
"""They only run with LOADER_SWEEP."""
SUITE = (
    "tests/dags",
    "tests/integration/materialise/test_modes.py",
    "tests/integration/materialise/test_schema.py",
    "tests/integration/materialise/test_renames.py",
)


def pins(file: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", file.read_text(), re.MULTILINE))


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda one: one.name)
def test_the_constraints_are_of_the_combination(combination: Combination) -> None:
    found, locked = pins(combination.constraints), pins(ROOT / "constraints.txt")
    assert found["apache-airflow"] == combination.airflow
    assert found["pyspark"] == found["pyspark-client"] == combination.spark
    for name in ("numba", "llvmlite", "numpy", "pandas"):
        assert found[name] == locked[name]


def test_every_pair_of_lines_is_a_combination() -> None:
    locked = pins(ROOT / "constraints.txt")
    default = Combination(locked["apache-airflow"], locked["pyspark"])
    names = {one.name for one in COMBINATIONS} | {default.name}
    assert names == {f"airflow-{a}-spark-{s}" for a in ("3.1", "3.2", "3.3") for s in spark_lines()}


@pytest.mark.e2e
@pytest.mark.skipif(os.environ.get("LOADER_SWEEP") != "1", reason="the matrix runs in the sweep")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda one: one.name)
def test_the_suite_passes(combination: Combination, tmp_path: Path) -> None:
    programs = install(combination, tmp_path / combination.name)
    variables = {name: value for name, value in os.environ.items() if name not in {"LOADER_SWEEP", "LOADER_JARS"}}
    variables["PATH"] = f"{programs}:{variables['PATH']}"
    argv = [programs / "pytest", "-p", "no:cacheprovider", "-q"]
    long = subprocess.run([*argv, *LONG], cwd=ROOT, env=variables | {"LOADER_SWEEP": "1"}, check=False)
    short = subprocess.run([*argv, *SUITE], cwd=ROOT, env=variables, check=False)
    assert (long.returncode, short.returncode) == (0, 0)
