"""The combinations of Airflow and Spark. The sweep builds an environment of each, and runs tests in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.combinations import COMBINATIONS, NEWEST, Combination, install, run_tests
from loader.jars.lock import spark_lines

ROOT = Path(__file__).resolve().parents[2]


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
    default = Combination(*NEWEST)
    assert (locked["apache-airflow"], locked["pyspark"]) == NEWEST
    names = {one.name for one in COMBINATIONS} | {default.name}
    assert names == {f"airflow-{a}-spark-{s}" for a in ("3.1", "3.2", "3.3") for s in spark_lines()}


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda one: one.name)
def test_the_tests_of_a_combination_exist(combination: Combination) -> None:
    named = (*combination.tests, *combination.long_tests)
    assert [name for name in named if not (ROOT / name).exists()] == []
    if combination.spark == NEWEST[1]:
        assert "tests/e2e/airflow/test_heals.py" in named
    assert ("tests/integration/materialise" in named) == (combination.airflow == NEWEST[0])


@pytest.mark.e2e
@pytest.mark.sweep
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda one: one.name)
def test_the_suite_passes(combination: Combination, tmp_path: Path) -> None:
    assert run_tests(combination, install(combination, tmp_path / combination.name))
