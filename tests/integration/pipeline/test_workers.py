"""Tasks of Spark and threads of the driver do the same work, and fail alike."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from loader.errors import GapError
from loader.extract.extraction import extract, reextract
from loader.pipeline import chain_of, extract_job, plan_interval
from loader.spark.job import failure
from loader.spark.workers import Tasks, Threads, Workers, workers_of
from tests.integration.pipeline.shops import Shop, shop
from tests.support.spark import jars, settings, spark

pytestmark = pytest.mark.integration

__all__ = ["jars", "settings", "shop", "spark"]  # fixtures


@pytest.mark.parametrize("shop", ["mysql"], indirect=True)
def test_they_stage_the_same(shop: Shop, spark: SparkSession) -> None:
    shop.insert(*range(10, 200))
    shop.run(
        "FLUSH BINARY LOGS", "CREATE TABLE shop.more (id INT PRIMARY KEY)", "INSERT INTO shop.more VALUES (1), (2)"
    )
    chosen = plan_interval(shop.settings)
    assert chosen is not None
    spec = cast("Any", extract_job(shop.settings, chosen.start_seqno).spec)
    assert extract(Tasks(spark), spec).status == "staged"
    manifest = chain_of(shop.settings).manifest(chosen.generation, chosen.start_seqno)
    assert manifest is not None
    assert {str(file.name): file.rows for file in manifest.files} == {"shop.orders": 190, "shop.more": 2}
    for workers in (Threads(2), Tasks(spark), Threads(1)):
        assert reextract(workers, spec).differences == ()
        assert extract(workers, spec).status == "already"


def test_they_fail_alike(spark: SparkSession) -> None:
    def work(piece: int) -> int:
        if piece:
            raise GapError("the log is gone", file="binlog.000007")
        return piece

    def told(workers: Workers) -> dict[str, Any]:
        with pytest.raises(Exception, match="the log is gone") as caught:
            workers.each(work, [0, 1])
        return failure(caught.value)

    assert told(Threads(2)) == told(Tasks(spark))
    assert told(Threads(2))["error"] == "GapError"
    assert Threads(2).each(work, [0, 0]) == Tasks(spark).each(work, [0, 0]) == [0, 0]
    assert Threads(2).each(work, []) == Tasks(spark).each(work, []) == []
    limited = Tasks(spark).limited(1)
    assert told(limited) == told(Tasks(spark))
    assert (limited.each(work, [0, 0]), limited.each(work, [])) == ([0, 0], [])


def test_readers_are_limited_over_all_callers(spark: SparkSession) -> None:
    """Three callers at once, as for three tables: the tasks never overlap more than they may."""

    def work(_: int) -> tuple[float, float]:
        began = time.monotonic()
        sum(range(300_000))
        return began, time.monotonic()

    for workers, most in ((Threads(4).limited(1), 1), (Tasks(spark).limited(1), 1), (Threads(1).limited(3), 3)):
        assert workers.count == most
        with ThreadPoolExecutor(3) as callers:
            found = list(callers.map(partial(workers.each, work), [range(2)] * 3))
        spans = [span for one in found for span in one]
        assert len(spans) == 6
        moments = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
        assert max(accumulate(change for _, change in moments)) <= most


def test_threads_where_the_driver_is_the_executor(spark: SparkSession) -> None:
    found = workers_of(spark)
    assert isinstance(found, Threads)
    assert found.count == 2
