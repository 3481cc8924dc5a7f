"""Spark stops an application after an error of its own: the errors of all its jobs say so, and that a retry helps."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]
_CHECKOUT = Path(__file__).resolve().parents[3]


def test_jobs_of_a_stopped_application_can_be_retried() -> None:
    """Of a job that runs, of a new one, and of cached data, which was seen in a delta on a busy machine."""
    argv = [sys.executable, "-m", "tests.integration.spark.test_stopped_application"]
    done = subprocess.run(argv, cwd=_CHECKOUT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    errors = json.loads(done.stdout.splitlines()[-1])
    assert [one["what"] for one in errors] == ["Spark, or one of its processes, ended during the job"] * 3
    assert [one["exit_code"] for one in errors] == [3] * 3


def until_a_task_runs(tracker: Any) -> None:
    while not any(tracker.getStageInfo(one).numActiveTasks for one in tracker.getActiveStageIds()):
        time.sleep(0.05)


def _main() -> None:
    from pyspark.sql import SparkSession

    from loader.spark.job import failure

    spark = SparkSession.builder.master("local[1]").getOrCreate()
    context = spark.sparkContext._jsc.sc()
    waiting = spark.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 60000L)")
    other = spark.range(5)
    errors = []
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(waiting.collect)
        until_a_task_runs(spark.sparkContext.statusTracker())
        context.stopInNewThread()  # as Spark does when its scheduler fails
        for work in (running.result, other.collect, other.persist):
            try:
                work()
            except Exception as error:
                errors.append(failure(error))
    sys.stdout.write(json.dumps(errors) + "\n")


if __name__ == "__main__":
    _main()
