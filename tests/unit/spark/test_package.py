"""What a package for executors has, and what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.spark.package.entries import entries_of, is_needed
from loader.spark.package.libraries import distributions


def test_tasks_get_the_loader_and_its_libraries_without_spark_and_airflow() -> None:
    names = {found.name.lower().replace("_", "-") for found in distributions()}
    assert {"binlog-loader", "numpy", "llvmlite", "pymysql", "pydantic-core", "pyarrow", "boto3", "hdfs"} <= names
    assert not {"pyspark", "pyspark-client", "py4j", "apache-airflow", "apache-airflow-core", "pytest"} & names


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("numpy/core.py", True),
        ("loader/extract/tests.py", True),
        ("numpy/tests/test_core.py", False),
        ("numpy/__pycache__/core.cpython-311.pyc", False),
        ("config/libpython3.11.a", False),
        ("site-packages/numpy/core.py", False),
    ],
)
def test_tests_headers_and_compiled_modules_are_left_out(path: str, needed: bool) -> None:
    assert is_needed(Path(path)) is needed


def test_linked_files_are_packed_under_their_own_names(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("1")
    (tmp_path / "linked.py").symlink_to("real.py")
    (tmp_path / "broken.py").symlink_to("missing.py")
    assert [entry.path for entry in entries_of(tmp_path, "lib")] == ["lib/linked.py", "lib/real.py"]
