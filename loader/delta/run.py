"""Runs extraction and then materialisation in one Spark application, so that Spark starts once."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from loader.delta.spec import DeltaResult, DeltaSpec
from loader.materialise.spec import MaterialiseResult, MaterialiseSpec
from loader.spark.job import failure

# Other modules are imported where they are used, while Spark starts.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from loader.spark.workers import Workers

_LOG = logging.getLogger(__name__)


def delta(starting: Future[SparkSession], spec: DeltaSpec) -> DeltaResult:
    """Extract and materialise the intervals. If an interval cannot be extracted, apply the intervals before it.

    Raises:
        LoaderError: the first interval could not be extracted, or no table could be begun and the spec has no
            `report_unmerged`.
    """
    with ThreadPoolExecutor(1) as background:
        # Spark and Iceberg take seconds to load classes for the first statement. On one machine, threads extract then.
        ready = background.submit(_ready, starting, spec)
        workers = _workers(starting, spec)
        from loader.extract.backlog import extract_backlog

        extracts, failed = extract_backlog(workers, spec.extract)
        through = spec.materialise.model_copy(update={"through_seqno": extracts[-1].stop_seqno})
        merged, unmerged = _merge(ready, through, report=spec.report_unmerged)
    return DeltaResult(extracts=tuple(extracts), materialise=merged, failed=failed, unmerged=unmerged)


def _merge(
    ready: Future[SparkSession], spec: MaterialiseSpec, *, report: bool
) -> tuple[MaterialiseResult, dict[str, Any] | None]:
    """Return the result of the merge, and with `report` the error that ended it."""
    from loader.materialise.merge.carry_over import carry_over
    from loader.materialise.merge.source_run import materialise

    try:
        quiet = carry_over(spec) if report else None  # as the later task does it, which reads no table for it
        return quiet or materialise(ready.result(), spec), None
    except Exception as error:
        if not report:
            raise
        _LOG.error("the staged intervals could not be merged", exc_info=error)
        return MaterialiseResult(tables=()), failure(error)


def _ready(starting: Future[SparkSession], spec: DeltaSpec) -> SparkSession:
    spark = starting.result()
    from loader.materialise.iceberg.warehouse import Warehouse

    return Warehouse(spark, spec.materialise.catalog, spec.materialise.rules).session


def _workers(starting: Future[SparkSession], spec: DeltaSpec) -> Workers:
    from loader.spark.workers import Tasks, Threads

    return Threads(spec.threads) if spec.threads else Tasks(starting.result(), spec.model_dump())
