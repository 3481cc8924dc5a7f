"""A table is loaded again to get rows that it lacks, and a run merges its newest changes before the load is applied."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, cast

import pytest

from loader import pipeline
from loader.airflow.finished_work import done_before
from loader.initial_load.run import stage_tables
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.load.load_run import load
from loader.materialise.merge import published_record, source_run
from loader.materialise.merge.source_run import materialise
from loader.materialise.rules import TableRule
from loader.pipeline.reports.source_status import status
from loader.spark.workers import Threads
from tests.integration.materialise.live.stops.test_skips import marked, skip
from tests.integration.materialise.live_source import LiveSource, live

__all__ = ["live"]
pytestmark = pytest.mark.integration


@pytest.mark.parametrize("expired", [False, True])
def test_a_load_that_a_merge_overtakes_replaces_the_rows(live: LiveSource, *, expired: bool) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)")
    live.load()
    skip(live, "INSERT INTO a VALUES (1)")
    live.delta()
    assert (live.differences(), marked(live)) == (["a"], {"a"})
    spec = _read_again(live)
    live.run("INSERT INTO a VALUES (2)")
    live.delta()  # as a schedule does while a table is read for hours
    if expired:
        _expire_snapshots(live)
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


def test_a_table_that_is_merged_less_often_is_merged_by_the_next_delta(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    rule = TableRule(tables=(f"{live.database}.a",), every="999999d")
    live.settings = live.settings.model_copy(update={"rules": (rule,)})
    live.load()
    live.run("INSERT INTO a VALUES (2)")
    read = _read_again(live)
    live.run("INSERT INTO a VALUES (3)")
    live.stage()
    materialise(live.spark, cast("Any", pipeline.materialise_job(live.settings, now=True).spec))
    assert live.differences() == []
    assert live.statuses(load(live.spark, read)) == {"a": "applied"}
    assert [table.words for table in status(live.settings).tables] == ["catching up"]
    assert live.statuses(live.merge()) == {"a": "applied"}
    assert [table.words for table in status(live.settings).tables] == ["exact"]
    assert live.differences() == []
    live.run("INSERT INTO a VALUES (4)")
    assert live.statuses(live.delta()) == {"a": "not_due"}


@pytest.mark.sweep
def test_a_purge_keeps_what_a_load_needs_that_comes_before_the_end_of_a_run(
    live: LiveSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of the run is younger than the load, but says nothing of it."""
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b LIKE a", "INSERT INTO b VALUES (1)")
    live.load()
    live.run("INSERT INTO b VALUES (3)")
    live.delta()
    read = _read_again(live)
    live.run("INSERT INTO a VALUES (2)")
    live.delta()
    live.run("INSERT INTO b VALUES (2)")
    publish = published_record.publish

    def publish_after_load(*arguments: Any) -> str:
        assert live.statuses(load(live.spark, read)) == {"a": "applied"}
        return publish(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(source_run, "publish", publish_after_load)
        live.delta()
    assert live.differences() == ["a"]
    pipeline.purge(live.settings, timedelta(0))
    assert live.statuses(live.merge())["a"] == "applied"
    assert live.differences() == []
    assert pipeline.purge(live.settings, timedelta(0)) != []


def test_a_history_is_refused_until_no_delta_runs_beside_the_load(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    rule = TableRule(tables=(f"{live.database}.a",), mode="history")
    live.settings = live.settings.model_copy(update={"rules": (rule,)})
    live.load()
    skip(live, "INSERT INTO a VALUES (2)")
    live.delta()
    read = _read_again(live)
    live.run("INSERT INTO a VALUES (3)")
    live.delta()
    before = _changes(live)
    for _ in range(2):
        (refused,) = load(live.spark, read).tables
        assert refused.error is not None
        assert refused.error["why"] == "the table is a history, which would get the changes since that position twice"
        assert marked(live) == {"a"}
        assert refused.error["hint"].endswith(f"loader initial-load --table {live.database}.a --again")
    live.run("INSERT INTO a VALUES (4)")
    live.delta()
    assert _changes(live) == before + Counter({("I", 4): 1})
    assert live.statuses(live.load_again("a")) == {"a": "applied"}
    assert _changes(live) == before + Counter({("I", 4): 1}) + Counter({("I", n): 1 for n in range(1, 5)})
    assert marked(live) == set()
    live.run("DELETE FROM a WHERE id = 4")
    live.delta()
    assert _changes(live)["D", 4] == 1


def test_a_load_that_comes_after_the_rename_of_its_table_does_not_unmark_it(live: LiveSource) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)")
    live.load()
    skip(live, "INSERT INTO a VALUES (1)")
    live.delta()
    read = _read_again(live)
    live.run("RENAME TABLE a TO b")
    for number in (7, 8):
        live.delta()
        assert (live.differences(), marked(live)) == (["b"], {"b"})
        load(live.spark, read)
        live.run(f"INSERT INTO b VALUES ({number})")


def _read_again(source: LiveSource) -> Any:
    """Read the table again, and return the job that applies the load."""
    job = pipeline.read_tables_job(source.settings, (f"{source.database}.a",), again=True)
    read = stage_tables(Threads(2), cast("Any", job.spec))
    assert read.exit_code == 0, read
    return pipeline.load_tables_job(source.settings, read.manifests).spec


def _changes(source: LiveSource) -> Counter[tuple[str, int]]:
    """The changes of the history, by operation and id."""
    rows = source.warehouse_rows("a")
    assert rows is not None
    names = sorted(("id", "_op", "_row_offset"))
    found: Counter[tuple[str, int]] = Counter()
    for row, count in rows.items():
        one = dict(zip(names, row, strict=True))
        found[one["_op"], one["id"]] += count
    return found


def _expire_snapshots(source: LiveSource) -> None:
    spec = pipeline.maintain_job(source.settings).spec
    result = maintain(source.spark, cast("Any", spec).model_copy(update={"keep_days": 0}))
    assert [table.error for table in result.tables] == [None]
