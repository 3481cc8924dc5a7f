"""Runs extraction and then materialisation in one Spark application, so that Spark starts once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from loader.delta.spec import DeltaResult, DeltaSpec

# Other modules are imported where they are used, while Spark starts.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from loader.spark.workers import Workers


def delta(starting: Future[SparkSession], spec: DeltaSpec) -> DeltaResult:
    """Extract and materialise the intervals. If an interval cannot be extracted, apply the intervals before it.

    Raises:
        LoaderError: the first interval could not be extracted, or no table could be begun.
    """
    with ThreadPoolExecutor(1) as background:
        # Spark and Iceberg take seconds to load classes for the first statement. On one machine, threads extract then.
        ready = background.submit(_ready, starting, spec)
        workers = _workers(starting, spec)
        from loader.extract.backlog import extract_backlog

        extracts, failed = extract_backlog(workers, spec.extract)
        from loader.materialise.merge.source_run import materialise

        spark = ready.result()
    through = spec.materialise.model_copy(update={"through_seqno": extracts[-1].stop_seqno})
    return DeltaResult(extracts=tuple(extracts), materialise=materialise(spark, through), failed=failed)


def _ready(starting: Future[SparkSession], spec: DeltaSpec) -> SparkSession:
    spark = starting.result()
    from loader.materialise.iceberg.warehouse import Warehouse

    return Warehouse(spark, spec.materialise.catalog, spec.materialise.rules).session


def _workers(starting: Future[SparkSession], spec: DeltaSpec) -> Workers:
    from loader.spark.workers import Tasks, Threads

    return Threads(spec.threads) if spec.threads else Tasks(starting.result(), spec.model_dump())
