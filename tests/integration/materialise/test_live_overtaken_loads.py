"""A table is loaded again to get rows that it lacks, and a run merges its newest changes before the load is applied."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.initial_load.run import stage_tables
from loader.materialise.load.load_run import load
from loader.spark.workers import Threads
from tests.integration.materialise.live_source import LiveSource, live
from tests.integration.materialise.test_live_skips import marked, skip

__all__ = ["live"]
pytestmark = pytest.mark.integration


def test_a_load_that_a_merge_overtakes_gives_the_rows_or_is_no_success(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)")
    live.load()
    skip(live, "INSERT INTO a VALUES (1)")
    live.delta()
    assert (live.differences(), marked(live)) == (["a"], {"a"})
    job = pipeline.read_tables_job(live.settings, (f"{live.database}.a",), again=True)
    read = stage_tables(Threads(2), cast("Any", job.spec))
    live.run("INSERT INTO a VALUES (2)")
    live.delta()  # as a schedule does while a table is read for hours
    result = load(live.spark, cast("Any", pipeline.load_tables_job(live.settings, read.manifests).spec))
    print(live.statuses(result), result.exit_code, live.differences(), marked(live))
    live.delta() if pipeline.plan_interval(live.settings) else None
    assert live.differences() == [] or result.exit_code
    assert live.differences() == [] or marked(live) == {"a"}
