"""The Python of executors: the properties that choose it, and errors of Spark about it."""

from __future__ import annotations

import sys

import pytest

from loader.errors import StagedDataError, UsageError
from loader.spark.executor_python import errors_of_tasks, python_conf
from loader.spark.job import carried

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
    with pytest.raises(UsageError) as raised, errors_of_tasks():
        raise RuntimeError(text)
    error = raised.value
    assert error.why.startswith("Python in worker has different version: 3.10 than that in driver: 3.11")
    assert not error.retryable


def test_the_error_of_a_task_is_raised_again() -> None:
    with pytest.raises(RuntimeError) as raised, carried():
        raise StagedDataError("a staged file has changed", file="a.csv")
    with pytest.raises(StagedDataError) as found, errors_of_tasks():
        raise OSError(f"Job aborted due to stage failure: {raised.value}\n\tat org.apache.spark.Task")
    assert (found.value.what, found.value.where) == ("a staged file has changed", {"file": "a.csv"})


def test_other_failures_are_not_of_a_task() -> None:
    lost = RuntimeError("Job aborted due to stage failure: ExecutorLostFailure")
    with pytest.raises(RuntimeError) as raised, errors_of_tasks():
        raise lost
    assert raised.value is lost
