"""What is imported where: DAG files are read every few seconds, and Spark has no Airflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loader.resources import folder

_DAGS = sorted(path.name for path in folder("dags").glob("*.py"))
_CONFIG = str(Path(__file__).parents[2] / "infra" / "examples" / "loader.toml")
_CONFIGURED = f"import os, runpy; os.environ['LOADER_CONFIG'] = {_CONFIG!r}"
_HEAVY = {"pyspark", "boto3", "numba", "numpy", "pymysql", "loader.pipeline", "loader.materialise.iceberg"}
_JOBS = (
    "loader.extract.jobs.extract_job",
    "loader.materialise.jobs.materialise_job",
    "loader.materialise.jobs.load_job",
    "loader.initial_load.job",
)


def _imported(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", _DAGS)
def test_a_dag_file_imports_nothing_heavy(name: str) -> None:
    path = str(Path(folder("dags"), name))
    modules = _imported(f"{_CONFIGURED}; runpy.run_path({path!r})")
    assert modules & {"loader.airflow.operators", "loader.airflow.tasks"}
    assert not modules & _HEAVY


def test_the_operators_for_users_import_nothing_heavy() -> None:
    """They come by name, because a process may still have to choose the home of Airflow."""
    assert "airflow" not in _imported("import loader.airflow")
    made = "from loader.airflow import *; BinlogDeltaOperator(task_id='a', source='shop')"
    assert not _imported(f"{_CONFIGURED}; {made}") & _HEAVY


@pytest.mark.parametrize("job", _JOBS)
def test_a_spark_job_imports_no_airflow(job: str) -> None:
    assert not {name for name in _imported(f"import {job}") if name.partition(".")[0] == "airflow"}
