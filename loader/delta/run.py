"""Extraction and materialisation one behind the other in one Spark application, which starts once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from loader.delta.spec import DeltaResult, DeltaSpec

# The rest is imported where it is used: Spark starts meanwhile.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from loader.extract.workers import Workers


def delta(starting: Future[SparkSession], spec: DeltaSpec) -> DeltaResult:
    """Do it all. What is staged before an interval that cannot be extracted is applied all the same.

    Raises:
        LoaderError: not even the first interval could be extracted, or no table could be begun.
    """
    with ThreadPoolExecutor(1) as beside:
        # Spark and Iceberg take seconds to load all that a first statement needs: on one machine threads extract then.
        ready = beside.submit(_ready, starting, spec)
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
    from loader.extract.workers import Tasks, Threads

    return Threads(spec.threads) if spec.threads else Tasks(starting.result())
