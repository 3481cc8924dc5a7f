"""A table is loaded again to get rows that it lacks, and a run merges its newest changes before the load is applied."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.airflow.finished_work import done_before
from loader.initial_load.run import stage_tables
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.load.load_run import load
from loader.pipeline.reports.source_status import status
from loader.spark.workers import Threads
from tests.integration.materialise.live_source import LiveSource, live
from tests.integration.materialise.test_live_skips import marked, skip

__all__ = ["live"]
pytestmark = pytest.mark.integration


@pytest.mark.parametrize("expired", [False, True])
def test_a_load_that_a_merge_overtakes_replaces_the_rows(live: LiveSource, *, expired: bool) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)")
    live.load()
    skip(live, "INSERT INTO a VALUES (1)")
    live.delta()
    assert (live.differences(), marked(live)) == (["a"], {"a"})
    job = pipeline.read_tables_job(live.settings, (f"{live.database}.a",), again=True)
    read = stage_tables(Threads(2), cast("Any", job.spec))
    live.run("INSERT INTO a VALUES (2)")
    live.delta()  # as a schedule does while a table is read for hours
    if expired:
        _expire_snapshots(live)
    spec = cast("Any", pipeline.load_tables_job(live.settings, read.manifests).spec)
    result = load(live.spark, spec)
    assert live.statuses(result) == {"a": "applied"}
    assert live.warehouse_rows("a") == {(1,): 1}
    merge = pipeline.materialise_job(live.settings, pipeline.find_stop(live.settings, status(live.settings).staged))
    assert [table.words for table in status(live.settings).tables] == ["catching up"]
    assert done_before(merge) is None  # although the newest record has this stop
    assert live.statuses(live.merge()) == {"a": "applied"}
    assert [table.words for table in status(live.settings).tables] == ["exact"]
    assert done_before(merge) is not None
    assert (live.differences(), marked(live)) == ([], set())
    if expired:
        _expire_snapshots(live)
    assert live.statuses(load(live.spark, spec)) == {"a": "already"}
    live.run("INSERT INTO a VALUES (3)")
    live.delta()
    assert (live.differences(), marked(live)) == ([], set())


def _expire_snapshots(source: LiveSource) -> None:
    spec = pipeline.maintain_job(source.settings).spec
    result = maintain(source.spark, cast("Any", spec).model_copy(update={"keep_days": 0}))
    assert [table.error for table in result.tables] == [None]
