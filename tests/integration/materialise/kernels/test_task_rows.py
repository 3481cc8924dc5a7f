"""Python objects that tasks make, and what the tasks report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pytest
from pyspark.sql import SparkSession

from loader.spark.task_rows import Reports, mapped_rows, task_rows

pytestmark = pytest.mark.integration


def squares(count: int) -> list[tuple[int, int]]:
    return [(number % 2, number * number) for number in range(count)]


def summed(reports: Reports[int], pairs: Iterable[tuple[int, int]]) -> Iterator[int]:
    found = [square for _, square in pairs]
    reports.add(sum(found))
    yield from found


def test_objects_are_shuffled_kept_and_reported(spark: SparkSession) -> None:
    reports = Reports[int](spark)
    pairs = task_rows(spark, "", squares, [3, 5]).partitionBy(2, int)
    kept = mapped_rows(spark, pairs, partial(summed, reports))
    assert sorted(reports.fill(kept)) == [11, 24]
    assert sorted(kept.collect()) == [0, 0, 1, 1, 4, 4, 9, 16]
    assert sorted(reports.fill(kept)) == [11, 24]
    kept.unpersist()


def test_a_report_that_is_missing_is_made_again(spark: SparkSession) -> None:
    """A task whose first attempt was lost after Spark had kept its objects finds them, and does not run."""
    reports = Reports[int](spark)
    kept = mapped_rows(spark, task_rows(spark, "", squares, [3, 5]), partial(summed, reports))
    assert reports.fill(kept) == [5, 30]
    del reports._found.value[1]
    assert reports.fill(kept) == [5, 30]
    kept.unpersist()
