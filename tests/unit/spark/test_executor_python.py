"""The Python of executors: the properties that choose it, and errors of Spark about it."""

from __future__ import annotations

import sys

import pytest

from loader.spark.executor_python import python_conf, python_error

DRIVER = {"spark.pyspark.driver.python": sys.executable}


@pytest.mark.parametrize("on_yarn", [False, True])
def test_settings_choose_the_python_of_executors(on_yarn: bool) -> None:
    assert python_conf("", "", on_yarn=on_yarn) == {}
    assert python_conf("", "/opt/python", on_yarn=on_yarn) == {"spark.pyspark.python": "/opt/python", **DRIVER}
    archives = "spark.yarn.dist.archives" if on_yarn else "spark.archives"
    assert python_conf("hdfs://n/loader.tar.gz", "", on_yarn=on_yarn) == {
        "spark.pyspark.python": "./loader/bin/python",
        archives: "hdfs://n/loader.tar.gz#loader",
        **DRIVER,
    }


def test_versions_of_python_that_differ_are_in_the_error() -> None:
    text = (
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different"
        " version: 3.10 than that in driver: 3.11, PySpark cannot run with different minor versions.\nPlease check"
    )
    error = python_error(RuntimeError(text))
    assert error is not None
    assert error.why.startswith("Python in worker has different version: 3.10 than that in driver: 3.11")
    assert not error.retryable


def test_other_failures_are_not_about_python() -> None:
    assert python_error(RuntimeError("Job aborted due to stage failure: ExecutorLostFailure")) is None
